package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ddiff/manifest"
)

// pageOf renders the page of results whose artifacts are in the store.
func pageOf(t *testing.T, store *memory, c Campaign, results []manifest.Result) string {
	t.Helper()
	shown := galleryOf(t, results, maxItems)
	summary := summaryOf(t, results, c.Select)
	with := parts{list: listingOf(t, results, maxListed), sheets: sheetKeys(shown.names(), nil)}
	lost, err := writePage(t.Context(), store, c, summary, shown, with)
	if err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	return string(store.files[KeyPage])
}

const hostile = "\u202e\u2066" + `</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>{{.}}&` + "\u2028`${1}`"

// hostileResults have a script in every text of a page.
func hostileResults(t *testing.T, store *memory) []manifest.Result {
	t.Helper()
	done := result(t, hostile, hostile, hostile, 0, scored(25, 20, 0.7, 0.001))
	done.Runtime.Provider = hostile
	illustrate(t, store, &done, 1)
	return []manifest.Result{
		done,
		result(t, hostile, hostile, hostile+"2", 0, ended(manifest.OutcomeFailed, hostile)),
	}
}

func hostileCampaign() Campaign {
	c := testCampaign()
	c.Name, c.Preset, c.Prior, c.PriorLicence = hostile, hostile, hostile, hostile
	return c
}

func TestPageEscapes(t *testing.T) {
	t.Parallel()
	store := newMemory()
	html := pageOf(t, store, hostileCampaign(), hostileResults(t, store))
	for _, bad := range []string{"<script>alert", "<img src=x", "'><img"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if got := strings.Count(html, "</script>"); got != 3 {
		t.Errorf("%d script elements end, want 3", got)
	}
	if !strings.Contains(html, "&lt;/script&gt;&lt;script&gt;alert(1)") || !strings.Contains(html, `\u003c/script\u003e\u003cscript\u003ealert(1)`) {
		t.Error("the hostile name is not shown as text")
	}
}

func TestPageEscapesInBrowser(t *testing.T) {
	t.Parallel()
	store := newMemory()
	page := publishedPage(t, store, hostileResults(t, store))
	addProbe(t, page, `
  document.querySelector(".item details").open = true;
  await pause(100);
  out.pictures = out.imagesLoaded;
  document.querySelector(".compare-button").click();
  out.name = document.querySelector(".item h3").textContent === document.getElementById("viewer-title").textContent;
  out.isolated = [...document.querySelectorAll(".item h3, .failures bdi, #viewer-title")].map((n) => getComputedStyle(n).unicodeBidi);`)
	document := browse(t, page, "")
	if got := state(t, document, "isolated"); got != "isolate,isolate,isolate,isolate" {
		t.Errorf("names have unicode-bidi %s", got)
	}
	if got := state(t, document, "name"); got != "true" {
		t.Error("card and viewer show different names")
	}
	if got := state(t, document, "pictures"); got != "3" {

		t.Errorf("%s pictures, want 3", got)
	}
	if strings.Contains(document, "<img src=\"x\"") || strings.Contains(document, "<script>alert") {
		t.Error("the browser saw markup in a name")
	}
}

func TestPageDataIsJSON(t *testing.T) {
	t.Parallel()
	store := newMemory()
	html := pageOf(t, store, testCampaign(), campaign(t, store))
	m := regexp.MustCompile(`(?s)<script type="application/json" id="report-curves">(.*?)</script>`).FindStringSubmatch(html)
	if m == nil {
		t.Fatal("the page has no data")
	}
	var data map[string]struct {
		Step   []int
		T      []int
		Series []struct {
			Name   string
			Values []float64
		}
	}
	if err := json.Unmarshal([]byte(m[1]), &data); err != nil {
		t.Fatal(err)
	}
	if c := data["0"]; len(data) != 28 || len(c.Series) != 6 || c.Series[0].Name != "data_norm" || len(c.Series[0].Values) != 100 || c.T[99] != 0 {
		t.Errorf("%d items with curves, the first has %+v", len(data), c.Series)
	}
}

func TestPageLoadsNothingFromTheNetwork(t *testing.T) {
	t.Parallel()
	store := newMemory()
	html := pageOf(t, store, testCampaign(), campaign(t, store))
	html = strings.ReplaceAll(html, `"http://www.w3.org/2000/svg"`, "") // a name, not an address
	if m := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]|@import|url\([^#]|<link`).FindString(html); m != "" {
		t.Errorf("the page refers to %q", m)
	}
}

func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	store := newMemory()
	trace, err := json.Marshal(madeUpTrace(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	var results []manifest.Result
	for i := range maxItems + 50 {
		r := result(t, "hdr", "ddiff", fmt.Sprintf("img%d", i), i, scored(30, 20, 0.7, 0))
		store.files[manifest.ItemKey(r.Item.ID, manifest.FileTrace)] = trace
		r.Artifacts = map[string]string{manifest.FileTrace: "not checked here"}
		results = append(results, r)
	}
	for i := range 200 + 7 {
		results = append(results, result(t, "hdr", "ddiff", fmt.Sprintf("bad%d", i), i, ended(manifest.OutcomeDead, "x")))
	}
	html := pageOf(t, store, testCampaign(), results)
	if got := strings.Count(html, `"series":`); got != maxItems {
		t.Errorf("curves of %d items, want %d", got, maxItems)
	}
	if got := len(regexp.MustCompile(`"img\d`).FindAllString(html, -1)); got != maxItems+50 {
		t.Errorf("%d names, want %d", got, maxItems+50)
	}
	if !strings.Contains(html, "And 7 more") {
		t.Error("the page does not count the other failures")
	}
}

func TestPageWithoutItems(t *testing.T) {
	t.Parallel()
	html := pageOf(t, newMemory(), Campaign{}, nil)
	for _, want := range []string{"Unnamed campaign", "The campaign has no items.", "No item was restored."} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageMarksTheOracle(t *testing.T) {
	t.Parallel()
	c := testCampaign()
	c.Select = RuleBestPSNR
	html := pageOf(t, newMemory(), c, tableResults(t))
	if !strings.Contains(html, "30.00*") || !strings.Contains(html, oracleNote) {
		t.Error("no asterisk or no footnote")
	}
	if strings.Contains(html, "best of this task") {
		t.Error("an oracle's figure is ranked")
	}
}

func TestPageShowsFigures(t *testing.T) {
	t.Parallel()
	store := newMemory()
	figure := figureFile{Name: "psnr", Caption: `PSNR "per" image <all>`, SVG: "figures/psnr.svg", PNG: "figures/psnr.png", Wide: true}
	if _, err := writePage(t.Context(), store, testCampaign(), Summary{}, &gallery{limit: 1}, parts{list: newListing(Summary{}, nil, 1), figures: []figureFile{figure}}); err != nil {
		t.Fatal(err)
	}
	html := string(store.files[KeyPage])
	for _, want := range []string{`<figure class="wide">`, `<img src="figures/psnr.svg"`, `href="figures/psnr.png"`, "PSNR &#34;per&#34; image &lt;all&gt;"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not hold %s", want)
		}
	}
}
