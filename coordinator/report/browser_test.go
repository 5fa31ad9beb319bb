package report

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

// chromium returns the path of the browser and skips the test if there is none.
func chromium(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: the page is not checked in a browser; apt-get install chromium")
	}
	return path
}

// browse loads a page from disk in a headless browser and returns the final document.
func browse(t *testing.T, page, fragment string, more ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	at := url.URL{Scheme: "file", Path: page, Fragment: fragment}
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
		"--user-data-dir=" + t.TempDir(), "--virtual-time-budget=5000", "--window-size=1320,1400",
	}
	args = append(append(args, more...), "--dump-dom", at.String())
	cmd := exec.CommandContext(ctx, chromium(t), args...)
	cmd.WaitDelay = 5 * time.Second
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run browser: %v\n%s", err, complaints.String())
	}
	return string(out)
}

// state reads a data attribute of the root element.
func state(t *testing.T, document, name string) string {
	t.Helper()
	m := regexp.MustCompile(`<html[^>]*\sdata-` + name + `="([^"]*)"`).FindStringSubmatch(document)
	if m == nil {
		t.Fatalf("the page set no data-%s; it begins %.300q", name, document)
	}
	return m[1]
}

// published writes the report of results to a directory and returns the path of its page.
// The reports stay in DDIFF_REPORT_DIR if the variable is set.
func published(t *testing.T, store *memory, results []manifest.Result) string {
	t.Helper()
	chromium(t)
	if _, err := Write(t.Context(), store, testCampaign(), stream(results)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if keep := os.Getenv("DDIFF_REPORT_DIR"); keep != "" {
		dir = filepath.Join(keep, t.Name())
	}
	store.export(t, dir)
	return filepath.Join(dir, KeyPage)
}

func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	// A method may declare curves that the page does not know.
	trace := madeUpTrace(100, 1)
	for _, name := range []string{"acceptance", "split_norm"} {
		trace.Curves = append(trace.Curves, manifest.Curve{Name: name, Values: trace.Curve("data_norm")})
	}
	data, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	store.files[manifest.ItemKey(results[0].Item.ID, manifest.FileTrace)] = data
	page := published(t, store, results)

	pictures, traces := 0, 0
	for _, r := range results {
		for file := range r.Artifacts {
			if file == manifest.FileTrace {
				traces++
			} else {
				pictures++
			}
		}
	}
	shot := filepath.Join(filepath.Dir(page), "screenshot.png")
	document := browse(t, page, "", "--screenshot="+shot)
	for name, want := range map[string]string{
		"ready":         "1",
		"images-loaded": strconv.Itoa(pictures),
		"images-broken": "0",
	} {
		if got := state(t, document, name); got != want {
			t.Errorf("data-%s = %s, want %s", name, got, want)
		}
	}
	if got, want := strings.Count(document, `<path class="curve `), 6*traces+2; got != want {
		t.Errorf("%d curves drawn, want %d", got, want)
	}
	// The fourth norm and the other curve have charts of their own.
	if got, want := strings.Count(document, `<svg class="plot"`), 2*traces+2; got != want {
		t.Errorf("%d charts drawn, want %d", got, want)
	}
	if strings.Contains(document, `d="M0 0"`) {
		t.Error("a curve is empty")
	}
	if info, err := os.Stat(shot); err != nil || info.Size() == 0 {
		t.Errorf("no screenshot: %v", err)
	}
}

func TestPageReportsBrokenImages(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := campaign(t, store)
	page := published(t, store, results)
	lost := filepath.Join(filepath.Dir(page), filepath.FromSlash(manifest.ItemKey(results[0].Item.ID, manifest.FileRestored)))
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	if got := state(t, browse(t, page, ""), "images-broken"); got != "1" {
		t.Errorf("data-images-broken = %s, want 1", got)
	}
}

// probe runs after the page's script and writes its findings to the root element.
const probe = `<script>addEventListener("load", () => {
  const out = document.documentElement.dataset;
  const names = () => [...document.querySelectorAll(".item:not([hidden]) h3")].map((h) => h.textContent).join(",");
  out.filtered = names();
  const heading = [...document.querySelectorAll("table.sortable th button")].find((b) => b.textContent.startsWith("PSNR"));
  const firstRow = () => document.querySelector("table.sortable tbody tr").cells[1].textContent;
  heading.click();
  out.up = firstRow() + " " + heading.parentElement.getAttribute("aria-sort");
  heading.click();
  out.down = firstRow() + " " + heading.parentElement.getAttribute("aria-sort");
  document.querySelector(".item:not([hidden]) .enlarge[data-kind=restored]").click();
  const slide = document.getElementById("slide");
  slide.value = 30;
  slide.dispatchEvent(new Event("input", { bubbles: true }));
  out.zoom = document.getElementById("zoom").open + " " + document.getElementById("zoom-before").style.clipPath;
  out.before = document.getElementById("zoom-before").getAttribute("src").split("/").pop();
  document.getElementById("zoom-next").click();
  out.next = document.getElementById("zoom-title").textContent.split(":")[0];
  document.getElementById("zoom-close").click();
  const plot = document.querySelector(".item:not([hidden]) svg.plot");
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  out.tooltip = document.getElementById("tooltip").textContent.split("\n")[0];
  const form = document.getElementById("toolbar");
  form.elements.method.value = "ddiff-hqs";
  form.elements.order.value = "";
  form.elements.show.value = "";
  form.elements.method.dispatchEvent(new Event("change", { bubbles: true }));
  out.refiltered = names();
  out.address = location.hash;
});</script>`

func TestPageInteraction(t *testing.T) {
	t.Parallel()
	store := newMemory()
	page := published(t, store, campaign(t, store))
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, append(content, probe...), 0o644); err != nil {
		t.Fatal(err)
	}
	document := browse(t, page, "task=super_resolution&order=psnr&show=5")
	for name, want := range map[string]string{
		// PSNR 21.0, 21.9 and 22.8 from ddiff-hqs, 23.0 and 24.3 from ddiff.
		"filtered":   "harbour.png,meadow_2.png,meadow_10.png,harbour.png,meadow_2.png",
		"up":         "ddiff-hqs ascending",
		"down":       "ddiff descending",
		"zoom":       "true inset(0px 70% 0px 0px)",
		"before":     manifest.FileMeasurement,
		"next":       "meadow_2.png",
		"tooltip":    "step 1 · t = 990",
		"refiltered": "harbour.png,meadow_2.png,meadow_10.png",
		"address":    "#task=super_resolution&amp;method=ddiff-hqs",
	} {
		if got := state(t, document, name); got != want {
			t.Errorf("data-%s = %q, want %q", name, got, want)
		}
	}
}
