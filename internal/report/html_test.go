package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/page"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sheet"
	"ddiff/restore/item"
)

// pageOf renders the page of results whose artifacts are in the store.
func pageOf(t *testing.T, store *reporttest.Memory, c Campaign, results []item.Result) string {
	t.Helper()
	shown := galleryOf(t, results, page.MaxItems)
	summary := summaryOf(t, results, c.Select)
	with := page.Parts{List: listingOf(t, results, page.MaxListed), Sheets: sheet.Keys(shown.Names(), nil)}
	lost, err := page.Write(t.Context(), store, c, summary, shown, with)
	if err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	return string(store.Files[KeyPage])
}

const hostile = "\u202e\u2066" + `</script><script>alert(1)</script>"'><img src=x onerror=document.documentElement.dataset.pwned=1>{{.}}&` + "\u2028`${1}`"

// hostileResults have a script in every text of a page.
func hostileResults(t *testing.T, store *reporttest.Memory) []item.Result {
	t.Helper()
	done := reporttest.Result(t, hostile, hostile, hostile, 0, reporttest.Scored(25, 20, 0.7, 0.001))
	done.Runtime.Provider = hostile
	attack := func(method string) func(*item.Result) {
		return func(r *item.Result) {
			settings, err := json.Marshal(map[string]string{"steps": hostile + method, hostile: method})
			reporttest.Must(t, err)
			r.Item.Solver, r.Item.Params, r.Item.Preset = settings, map[string]float64{hostile: 2}, hostile
			r.Item.Prior, r.Runtime.Provider = hostile, hostile
			r.Warnings = []item.Warning{{Code: hostile, Text: hostile}}
		}
	}
	again := reporttest.Result(t, "hdr", hostile+"a", hostile, 0, reporttest.Scored(25, 20, 0.7, 0.001), attack("a"))
	for i, r := range []*item.Result{&done, &again} {
		reporttest.Illustrate(t, store, r, i)
	}
	return []item.Result{
		done, again,
		reporttest.Result(t, "hdr", hostile+"b", hostile, 0, reporttest.Scored(24, 20, 0.7, 0.001), attack("b"), reporttest.Later(hostile+"@1:aaaaaaaa", 0.5)),
		reporttest.Result(t, hostile, hostile, hostile+"2", 0, reporttest.Ended(item.OutcomeFailed, hostile)),
	}
}

func hostileCampaign() Campaign {
	c := testCampaign()
	c.Name, c.Prior, c.PriorLicence = hostile, hostile, hostile
	return c
}

// TestAttackPage opens a page of results of others, which have markup in the name of the campaign and of its output, in names, tasks,
// methods, parameters, settings, warnings and metrics, and opens all that a click shows: nothing runs, and all is text.
func TestAttackPage(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	chromium(t)
	c := hostileCampaign()
	c.Outputs = []string{hostile}
	results := hostileResults(t, store)
	if _, err := Write(t.Context(), store, c, reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store.Export(t, dir)
	index := filepath.Join(dir, KeyPage)
	addProbe(t, index, `
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  document.querySelectorAll("table.sortable th button").forEach((b) => b.click());
  await pause(100);
  const attributes = new Set([...document.querySelectorAll("*")].flatMap((n) => n.getAttributeNames()));
  out.handlers = [...attributes].filter((n) => n.startsWith("on")).join();
  out.scripts = document.scripts.length;
  out.pictures = out.imagesLoaded;
  document.querySelector(".compare-button").click();
  await pause(100);
  out.name = [...document.querySelectorAll(".item header h3")].some((h) => h.textContent === document.getElementById("viewer-title").textContent);
  out.isolated = [...document.querySelectorAll(".item header h3, .failures bdi, #viewer-title")].map((n) => getComputedStyle(n).unicodeBidi);`)
	document := browse(t, index, "")
	wantStates(t, document, map[string]string{"handlers": "", "scripts": "4"}) // three of the page, and the probe
	if strings.Contains(document[:strings.Index(document, ">")+strings.Index(document, "<head")], "data-pwned") {
		t.Error("a name ran as a script")
	}
	if got := state(t, document, "isolated"); strings.Trim(got, "isolate,") != "" || strings.Count(got, "isolate") != 6 {
		t.Errorf("names have unicode-bidi %s", got)
	}
	if got := state(t, document, "name"); got != "true" {
		t.Error("card and viewer show different names")
	}
	if got := state(t, document, "pictures"); got == "0" || state(t, document, "images-broken") != "0" {
		t.Errorf("%s pictures, and some are broken", got)
	}
	if strings.Contains(document, "<img src=\"x\"") || strings.Contains(document, "<script>alert") {
		t.Error("the browser saw markup in a name")
	}
}

func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	trace, err := json.Marshal(reporttest.Trace(3, 1))
	reporttest.Must(t, err)
	var results []item.Result
	for i := range page.MaxItems + 50 {
		r := reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("img%d", i), i, reporttest.Scored(30, 20, 0.7, 0))
		store.Files[item.Key(r.Item.ID, item.FileTrace)] = trace
		r.Artifacts = map[string]string{item.FileTrace: "not checked here"}
		results = append(results, r)
	}
	for i := range 200 + 7 {
		results = append(results, reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("bad%d", i), i, reporttest.Ended(item.OutcomeDead, "x")))
	}
	html := pageOf(t, store, testCampaign(), results)
	if got := strings.Count(html, `"series":`); got != page.MaxItems {
		t.Errorf("curves of %d items, want %d", got, page.MaxItems)
	}
	if got := len(regexp.MustCompile(`"img\d`).FindAllString(html, -1)); got != page.MaxItems+50 {
		t.Errorf("%d names, want %d", got, page.MaxItems+50)
	}
	if !strings.Contains(html, "And 7 more") {
		t.Error("the page does not count the other failures")
	}
}

func TestPageWithoutItems(t *testing.T) {
	t.Parallel()
	html := pageOf(t, reporttest.NewMemory(), Campaign{}, nil)
	reporttest.Contains(t, html, "Unnamed campaign", "The campaign has no items.", "No item was restored.")
}

func TestPageMarksTheOracle(t *testing.T) {
	t.Parallel()
	c := testCampaign()
	c.Select = selection.BestPSNR
	html := pageOf(t, reporttest.NewMemory(), c, reporttest.TableResults(t))
	if !strings.Contains(html, ".00*</span>") || !strings.Contains(html, selection.OracleNote) {
		t.Error("no asterisk or no footnote")
	}
	if strings.Contains(html, "best of this problem") {
		t.Error("an oracle's figure is ranked")
	}
}

// rows makes n finished items of a task; psnr may be nil.
func rows(task string, n int, psnr func(i int) float64) []item.Result {
	out := make([]item.Result, n)
	for i := range out {
		out[i].Outcome = item.OutcomeDone
		out[i].Item.Task, out[i].Item.Name = task, fmt.Sprintf("%s-%d", task, i)
		out[i].Metrics = item.Metrics{"residual": float64(i)}
		if psnr != nil {
			out[i].Metrics["psnr"] = psnr(i)
		}
	}
	return out
}

// galleryOf adds the sorted results to a gallery.
func galleryOf(t *testing.T, results []item.Result, limit int) *page.Gallery {
	t.Helper()
	set, err := entry.Collect(reporttest.Stream(results), nil, selection.First, false)
	reporttest.Must(t, err)
	return page.NewGallery(set.Entries, limit)
}

// excerpt returns the names of the items on a page of at most limit items.
func excerpt(t *testing.T, results []item.Result, limit int) []string {
	t.Helper()
	var out []string
	for _, e := range galleryOf(t, results, limit).Excerpt() {
		out = append(out, e.Name)
	}
	return out
}

func TestExcerptSelectsAllItemsWithinTheLimit(t *testing.T) {
	t.Parallel()
	results := append(rows("a", 3, nil), rows("b", 1, nil)...)
	results[1].Outcome = item.OutcomeFailed
	if got, want := excerpt(t, results, 3), []string{"a-0", "a-2", "b-0"}; !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}

func TestExcerptSelectsWorstAndFirst(t *testing.T) {
	t.Parallel()
	// Of task a the last rows are the worst by PSNR, of task b by residual.
	results := append(rows("a", 20, func(i int) float64 { return 40 - float64(i) }), rows("b", 20, nil)...)
	got := excerpt(t, results, 8)
	want := []string{"a-0", "a-1", "a-18", "a-19", "b-0", "b-1", "b-18", "b-19"}
	if !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}

// listingOf lists at most limit of the sorted results.
func listingOf(t *testing.T, results []item.Result, limit int) *page.Listing {
	t.Helper()
	set, err := entry.Collect(reporttest.Stream(results), nil, selection.First, false)
	reporttest.Must(t, err)
	l := page.NewListing(summaryOf(t, results, selection.First), set.Columns.Names(), limit)
	for _, e := range set.Entries {
		l.Add(e)
	}
	return l
}

func TestListingSharesItsPlaces(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for task, n := range map[string]int{"a": 30, "b": 3, "c": 40} {
		for i := range n {
			results = append(results, reporttest.Result(t, task, "ddiff", fmt.Sprintf("img%02d", i), 0))
		}
	}
	l := listingOf(t, results, 30)
	counts := make(map[string]int)
	for row := range l.ID {
		counts[l.Cells[l.Cell[row]].Task]++
	}
	if counts["a"] != 10 || counts["b"] != 3 || counts["c"] != 17 {
		t.Errorf("items = %v, want a 10, b 3, c 17", counts)
	}
}

// pageItems decodes the page's table of items.
func pageItems(t *testing.T, index string) *page.Listing {
	t.Helper()
	_, rest, _ := strings.Cut(index, `id="report-data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var data struct {
		Items struct {
			ID       []string
			Pictures []int
		}
	}
	reporttest.Must(t, json.Unmarshal([]byte(text), &data))
	return &page.Listing{ID: data.Items.ID, Pictures: data.Items.Pictures}
}

// TestMosaicIsBounded: the sheets of all tasks are linked, and a report without finished items leaves no mosaic.
func TestMosaicIsBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for i := range 12 + 3 {
		results = append(results, reporttest.Result(t, fmt.Sprintf("task with a very long name %d", i), "ddiff", "a", 0))
	}
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	if index := string(store.Files[KeyPage]); !strings.Contains(index, "sheets/task-with-a-very-long-name-14.png") && !strings.Contains(index, "sheets/task_with_a_very_long_name_14.png") || store.Files[KeyMosaic] == nil {
		t.Error("the page does not link the sheets of all tasks, or there is no mosaic")
	}
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(nil)); err != nil {
		t.Fatal(err)
	}
	if store.Files[KeyMosaic] != nil || strings.Contains(string(store.Files[KeyPage]), KeyMosaic) {
		t.Error("the mosaic of the earlier report is left")
	}
}
