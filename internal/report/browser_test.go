package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ddiff/internal/report/page"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/restore/item"
)

// chromium returns the path of the browser. It skips the test if there is none, and in short mode.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a browser: make test-all")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: the page is not checked in a browser; apt-get install chromium")
	}
	return path
}

// browse loads a page from disk in a headless browser and returns the final document. A message on the console fails the
// test.
func browse(t *testing.T, index, fragment string, more ...string) string {
	t.Helper()
	document, console := load(t, index, fragment, append([]string{"--virtual-time-budget=5000"}, more...)...)
	if console != "" {
		t.Errorf("the browser's console shows\n%s", console)
	}
	return document
}

// load loads a page from disk in a headless browser and returns the final document and the lines of the console.
func load(t *testing.T, index, fragment string, more ...string) (document, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	at := url.URL{Scheme: "file", Path: index, Fragment: fragment}
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir=" + t.TempDir(), "--window-size=1320,1400", "--hide-scrollbars",
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
	var lines []string
	for line := range strings.Lines(complaints.String()) {
		if strings.Contains(line, "CONSOLE") {
			lines = append(lines, line)
		}
	}
	return string(out), strings.Join(lines, "")
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

// wantStates checks data attributes of the root element.
func wantStates(t *testing.T, document string, wants map[string]string) {
	t.Helper()
	for name, want := range wants {
		if got := state(t, document, name); got != want {
			t.Errorf("data-%s = %q, want %q", name, got, want)
		}
	}
}

// publishedPage writes the report of results to a directory and returns the path of its page.
// The reports stay in DDIFF_REPORT_DIR if the variable is set.
func publishedPage(t *testing.T, store *reporttest.Memory, results []item.Result) string {
	t.Helper()
	chromium(t)
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if keep := os.Getenv("DDIFF_REPORT_DIR"); keep != "" {
		dir = filepath.Join(keep, t.Name())
	}
	store.Export(t, dir)
	return filepath.Join(dir, KeyPage)
}

func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := campaign(t, store)
	// A method may declare curves that the page does not know.
	trace := reporttest.Trace(100, 1)
	for _, name := range []string{"acceptance", "split_norm"} {
		trace[name] = trace["data_norm"]
	}
	data, err := json.Marshal(trace)
	reporttest.Must(t, err)
	store.Files[item.Key(results[0].Item.ID, item.FileTrace)] = data
	index := publishedPage(t, store, results)

	pictures, traces := 0, 0
	for _, r := range results {
		for file := range r.Artifacts {
			if file == item.FileTrace {
				traces++
			} else {
				pictures++
			}
		}
	}
	shot := filepath.Join(filepath.Dir(index), "screenshot.png")
	addProbe(t, index, `
  const more = document.getElementById("more");
  more.click();
  await pause(100);
  out.more = more.hidden;
  out.before = document.querySelectorAll(".chart").length;
  document.querySelectorAll(".item details").forEach((d) => { d.open = true; });
  await pause(1000);
  // The pixels of a curve: neither empty nor of the axes alone, which are grey.
  const coloured = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) n++;
    return n > 100;
  };
  out.drawn = [...document.querySelectorAll(".chart canvas")].filter(coloured).length;`)
	// The window is as high as the page: pictures outside of it are not loaded.
	document := browse(t, index, "", "--screenshot="+shot, "--window-size=1320,20000")
	wantStates(t, document, map[string]string{
		"ready":         "1",
		"images-loaded": strconv.Itoa(pictures),
		"images-broken": "0",
		"before":        "0", // no curves before a click
		"more":          "true",
	})
	// Each chart has its curves and the step in its legend. The fourth norm and the other curve have charts of their own.
	if got, want := strings.Count(document, `<tr class="u-series`), 3*traces+2+traces+2; got != want {
		t.Errorf("%d lines of legends, want %d", got, want)
	}
	if got, want := state(t, document, "drawn"), strconv.Itoa(traces+2); got != want {
		t.Errorf("%s charts have curves, want %s", got, want)
	}
	if info, err := os.Stat(shot); err != nil || info.Size() == 0 {
		t.Errorf("no screenshot: %v", err)
	}
}

func TestPageReportsBrokenImages(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := campaign(t, store)
	index := publishedPage(t, store, results)
	lost := filepath.Join(filepath.Dir(index), filepath.FromSlash(item.Key(results[0].Item.ID, item.FileRestored)))
	reporttest.Must(t, os.Remove(lost))
	addProbe(t, index, `new Image().src = "http://192.0.2.1/a.png";`)
	document, console := load(t, index, "", "--virtual-time-budget=5000")
	if got := state(t, document, "images-broken"); got != "1" {
		t.Errorf("data-images-broken = %s, want 1", got)
	}
	if !strings.Contains(console, "violates the following Content Security Policy") {
		t.Errorf("console = %q, so a request to the network goes unnoticed", console)
	}
	if !strings.Contains(document, ">file not found<") {
		t.Error("the page does not say that a file is missing")
	}
}

// addProbe appends a script to a page that runs once the page is loaded. It writes its findings to out, the data
// attributes of the root element.
func addProbe(t *testing.T, index, script string) {
	t.Helper()
	content, err := os.ReadFile(index)
	reporttest.Must(t, err)
	content = append(content, `<script>addEventListener("load", async () => {
  const out = document.documentElement.dataset;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const names = () => [...document.querySelectorAll(".item header h3")].map((h) => h.textContent).join(",");
  const set = async (field, value) => {
    field.value = value;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
    await pause(100);
  };
  await pause(100); // the page is connected after it is drawn
`+script+"\n});</script>"...)
	reporttest.Must(t, os.WriteFile(index, content, 0o644))
}

func TestPageInteraction(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	index := publishedPage(t, store, campaign(t, store))
	addProbe(t, index, `
  out.filtered = names();
  const heading = [...document.querySelectorAll("table.sortable th button")].find((b) => b.textContent.startsWith("PSNR"));
  const firstRow = () => document.querySelector("table.sortable tbody tr").cells[1].textContent;
  heading.click();
  out.up = firstRow() + " " + heading.parentElement.getAttribute("aria-sort");
  heading.click();
  out.down = firstRow() + " " + heading.parentElement.getAttribute("aria-sort");
  const details = document.querySelector(".item details");
  details.open = true;
  await pause(100);
  const plot = details.querySelector(".plot");
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  await pause(100);
  out.cursor = plot.querySelector(".u-series").textContent;
  const list = (row) => [...row.children].map((c) => c.textContent).join("=");
  out.settings = [...details.querySelectorAll("dl.settings > div")].map(list).join(" ");
  const form = document.querySelector("form.toolbar");
  await set(form.elements.method, "ddiff-hqs");
  await set(form.elements.order, "");
  await set(form.elements.q, "MEADOW .png");
  out.refiltered = names();
  out.shown = form.querySelector("output").textContent;
  out.address = location.hash;
  await set(form.elements.q, "no such image");
  out.none = document.getElementById("cards").textContent;`)
	document := browse(t, index, "/?task=super_resolution&order=psnr")
	for name, want := range map[string]string{
		// PSNR 21.0, 21.9 and 22.8 from ddiff-hqs, 23.0, 24.3 and 25.6 from ddiff.
		"filtered": "harbour.png,meadow_2.png,meadow_10.png,harbour.png,meadow_2.png,meadow_10.png",
		"up":       "ddiff-hqs ascending",
		"down":     "ddiff descending",
		"cursor":   "step2 · t = 980",
		"settings": "Task=Super-resolution (super_resolution) Noise σ=0.05 Size=128 × 128 px, center_crop Method=ddiff-hqs " +
			"Settings=steps=100 Prior=" + strings.Repeat("ab", 32) + " Seed=7 Run=0 Residual=mean((y − A(x))²) − σ² = 0.0052 Cost=100 steps in 2.00 s on cpu Item=",
		"refiltered": "meadow_2.png,meadow_10.png",
		"shown":      "2 of 28 items match",
		"address":    "#/?task=super_resolution&amp;method=ddiff-hqs&amp;q=MEADOW+.png",
		"none":       "No item matches.",
	} {
		if got := state(t, document, name); got != want && (name != "settings" || !strings.HasPrefix(got, want)) {
			t.Errorf("data-%s = %q, want %q", name, got, want)
		}
	}
}

// TestViewerComparesRestorations opens one measurement with two methods and two runs each.
func TestViewerComparesRestorations(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for i, name := range []string{"a.png", "b.png"} {
		for _, method := range []string{"ddiff", "ddiff-hqs"} {
			for run := range 2 {
				r := reporttest.Result(t, "hdr", method, name, run, reporttest.Scored(20+float64(i), 18, 0.5, 0.01))
				reporttest.Illustrate(t, store, &r, i)
				results = append(results, r)
			}
		}
	}
	index := publishedPage(t, store, results)
	addProbe(t, index, `
  const stage = document.getElementById("stage");
  const key = (key) => stage.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const zoom = () => ["--scale", "--x", "--y"].map((name) => +parseFloat(stage.style.getPropertyValue(name)).toFixed(2)).join(" ");
  const frame = () => stage.querySelectorAll(".frame")[2];
  const box = () => frame().getBoundingClientRect();
  const pointer = (type, id, x, y) => frame().dispatchEvent(new PointerEvent(type,
    { pointerId: id, clientX: box().left + x * box().width, clientY: box().top + y * box().height, bubbles: true }));
  out.open = document.querySelector("dialog").open;
  out.panels = [...stage.querySelectorAll("figcaption strong")].map((c) => c.textContent).join(";");
  out.current = stage.querySelector(".current strong").textContent;
  const wheel = new WheelEvent("wheel", { deltaY: -60, clientX: box().left + 0.5 * box().width, clientY: box().top, bubbles: true, cancelable: true });
  frame().dispatchEvent(wheel);
  out.wheel = zoom().replace(/ -17\.\d+/, " -17") + " " + wheel.defaultPrevented;
  key("0");
  out.reset = zoom();
  pointer("pointerdown", 1, 0.4, 0.5); pointer("pointerdown", 2, 0.6, 0.5);
  pointer("pointermove", 1, 0.3, 0.5); pointer("pointermove", 2, 0.7, 0.5);
  pointer("pointerup", 1, 0, 0); pointer("pointerup", 2, 0, 0);
  out.pinch = Number(stage.style.getPropertyValue("--scale")).toFixed(1);
  key("0"); key("+"); key("ArrowRight");
  out.keys = zoom();
  const matrices = [...stage.querySelectorAll(".inner")].map((i) => getComputedStyle(i).transform);
  out.synchronised = matrices.length + " " + matrices.every((m) => m !== "none" && m === matrices[0]);
  document.querySelector("[name=layer][value=divide-measurement]").click();
  await pause(100);
  key("0");
  pointer("pointerdown", 1, 0.5, 0.5); pointer("pointermove", 1, 0.3, 0.5); pointer("pointerup", 1, 0.3, 0.5);
  await pause(100);
  out.cut = stage.style.getPropertyValue("--cut");
  out.over = stage.querySelector(".over").getAttribute("src").split("/").pop();
  key("n");
  await pause(100);
  out.next = document.getElementById("viewer-title").textContent;
  out.address = location.hash;
  const dialog = document.querySelector("dialog");
  [...dialog.querySelectorAll("button")].find((b) => b.textContent === "Close").click();
  out.closed = !dialog.open;
  dialog.dispatchEvent(new Event("close")); // which a browser sends with its next frame, and this one draws none
  await pause(100);
  out.left = location.hash + document.querySelectorAll("dialog").length;`)
	document := browse(t, index, "/?item="+results[3].Item.ID)
	wantStates(t, document, map[string]string{
		"open": "true",
		"panels": "Truth;Measurement;ddiff, run 0;Mean of 2 runs;Deviation of 2 runs, white: 0.2;ddiff, run 1;" +
			"ddiff-hqs, run 0;Mean of 2 runs;Deviation of 2 runs, white: 0.2;ddiff-hqs, run 1",
		"current":      "ddiff-hqs, run 1",
		"wheel":        "1.35 -17 0 true", // exp(0.3), fixed at (0.5, 0)
		"reset":        "1 0 0",
		"pinch":        "2.0", // from 0.2 to 0.4 of the frame
		"keys":         "1.25 -22.5 -12.5",
		"synchronised": "10 true",
		"cut":          "30%",
		"over":         item.FileMeasurement,
		"next":         "b.png",
		"address":      "#/?item=" + results[6].Item.ID, // the same method of the next measurement
		"closed":       "true",
		"left":         "#/0",
	})
}

// TestPhone: inside a page of 360 and of 1280 pixels, the summary with all columns and long settings scrolls to its last column, also by
// keyboard, the first card shows its PSNR, nothing overflows, no word of a table is broken, each row has a cell for each heading, and in the dark
// all texts and figures differ from a dark paper. Frames have the widths, because the browser's windows are wider.
func TestPhone(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for i, method := range []string{"ddiff", "latent_ddiff", "diffpir"} {
		for _, task := range []string{"super_resolution_area", "phase_retrieval"} {
			r := reporttest.Result(t, task, method, "a.png", 0, reporttest.Scored(25+float64(i), 20, 0.7, 0.001), reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1234))
			r.Cost = item.Cost{Network: 1000, NetworkBackward: 1000, Operator: 30000}
			results = append(results, r)
		}
		r := reporttest.Result(t, "hdr", method, "a.png", 0, reporttest.Scored(25, 20, 0.7, 0.001), reporttest.With(0.1, `{"steps":100,"gamma0":0.0625,"schedule":"uniform","noise_std":0.01}`))
		results = append(results, r)
	}
	index := publishedPage(t, store, results)
	addProbe(t, index, `
  const found = {};
  document.documentElement.dataset.theme = "dark";
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  await pause(200);
  const box = document.querySelector("table.sortable").parentElement;
  box.scrollLeft = 1e6;
  const last = document.querySelector("table.sortable thead").rows[0].cells;
  const heading = last[last.length - 1].getBoundingClientRect();
  found.reached = heading.right <= innerWidth && heading.left >= 0 && box.tabIndex === 0;
  found.page = document.documentElement.scrollWidth <= innerWidth;
  const broken = [];
  document.querySelectorAll("table:not(.u-legend) :is(th, td)").forEach((cell) => {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode;
      if (text.parentElement.closest("code, .reason, bdi")) continue; // digests and messages
      for (const { 0: word, index } of text.data.matchAll(/[\p{L}\d]+/gu)) {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) broken.push(word);
      }
    }
  });
  found.broken = broken.join("+");
  found.cells = [...document.querySelectorAll("main table:not(.u-legend)")].every((t) => [...t.tBodies[0].rows].every((r) => r.cells.length === t.tHead.rows[0].cells.length));
  const light = (color) => { const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number); return a === 0 ? null : (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const texts = [...document.querySelectorAll("main :is(p, th, td, h2, h3, li, summary, dd)")].map((n) => light(getComputedStyle(n).color));
  const drawn = [...document.querySelectorAll("main svg :is(circle.dot, rect.each, text)")].map((n) => light(getComputedStyle(n).fill));
  found.dark = paper < 0.1 && texts.length > 20 && drawn.length > 5 && [...texts, ...drawn].every((v) => v > 0.35);
  const psnr = document.querySelector(".item .figures dd");
  const place = psnr.getBoundingClientRect();
  found.psnr = place.width > 0 && place.left >= 0 && place.right <= innerWidth && psnr.textContent === "25.00 dB";
  parent.postMessage({ [innerWidth < 800 ? "phone" : "desk"]: Object.entries(found).join(" ") }, "*");`)
	both := filepath.Join(filepath.Dir(index), "both.html")
	frame := `<!DOCTYPE html><html><script>addEventListener("message", (e) => Object.assign(document.documentElement.dataset, e.data));</script>
<iframe src="index.html" width="360" height="740" style="border: 0"></iframe><iframe src="index.html" width="1280" height="740" style="border: 0"></iframe></html>`
	reporttest.Must(t, os.WriteFile(both, []byte(frame), 0o644))
	const want = "reached,true page,true broken, cells,true dark,true psnr,true"
	wantStates(t, browse(t, both, ""), map[string]string{"phone": want, "desk": want})
}

// bands is a PNG with a band of each colour.
func bands(t *testing.T, colors ...color.RGBA) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 48, 48))
	for i := range 48 * 48 {
		img.Set(i%48, i/48, colors[i/48*len(colors)/48])
	}
	var out bytes.Buffer
	reporttest.Must(t, png.Encode(&out, img))
	return out.Bytes()
}

// TestErrorMapHasTheStatedScale reads the colours of an error map from a screenshot: the scale's end is 0.2.
func TestErrorMapHasTheStatedScale(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	r := reporttest.Result(t, "hdr", "ddiff", "flat.png", 0, reporttest.Scored(20, 18, 0.5, 0.01))
	r.Artifacts = map[string]string{}
	for file, data := range map[string][]byte{
		item.FileTruth:    bands(t, color.RGBA{100, 120, 140, 255}),
		item.FileRestored: bands(t, color.RGBA{100, 120, 140, 255}, color.RGBA{136, 120, 137, 255}, color.RGBA{160, 180, 200, 255}),
	} {
		r.Artifacts[file] = "not checked here"
		store.Files[item.Key(r.Item.ID, file)] = data
	}
	index := publishedPage(t, store, []item.Result{r})
	addProbe(t, index, `
  document.querySelector("[name=layer][value=error]").click();
  await pause(200);
  const box = document.querySelector("#stage .restored .frame").getBoundingClientRect();
  out.box = JSON.stringify([box.left + box.width / 2, box.top, box.height].map(Math.round));
  out.end = document.getElementById("error-end").textContent;`)
	shot := filepath.Join(filepath.Dir(index), "screenshot.png")
	document := browse(t, index, "/?item="+r.Item.ID, "--screenshot="+shot)
	data, err := os.ReadFile(shot)
	reporttest.Must(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	reporttest.Must(t, err)
	var box [3]int
	reporttest.Must(t, json.Unmarshal([]byte(state(t, document, "box")), &box))
	if end := state(t, document, "end"); end != "0.2" {
		t.Errorf("the scale ends at %s", end)
	}
	for band, want := range []color.RGBA{
		{0, 0, 4, 255},       // a mean difference of 0 is the first colour
		{83, 19, 124, 255},   // 36, 0 and -3 levels: 13/255 = 0.051 is 0.255 of the scale, a little above its third colour, #51127c
		{252, 253, 191, 255}, // 60/255 = 0.235 is beyond the scale
	} {
		got := color.RGBAModel.Convert(img.At(box[0], box[1]+(2*band+1)*box[2]/6)).(color.RGBA)
		near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= 3 }
		if !near(got.R, want.R) || !near(got.G, want.G) || !near(got.B, want.B) {
			t.Errorf("band %d has the colour %v, want %v", band, got, want)
		}
	}
}

// TestCardShowsFurtherScoresAndPictures: scores that were computed after solving, pictures that the report made, and a mark at a residual
// that the noise does not explain.
func TestCardShowsFurtherScoresAndPictures(t *testing.T) {
	t.Parallel()
	chromium(t)
	store := reporttest.NewMemory()
	r := reporttest.Result(t, "hdr", "ddiff", "a.png", 0, reporttest.Scored(25, 20, 0.7, 0.001), reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.1234))
	reporttest.Illustrate(t, store, &r, 1)
	store.Files["deviation/a.png"] = reporttest.Scene(t, 16, 1, 0)
	results := []item.Result{r}
	for i, residual := range []float64{0.00124, 0.00126} {
		results = append(results, reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("b%d", i), 0, reporttest.Scored(25, 20, 0.5, residual)))
	}
	with := page.Parts{
		List:     listingOf(t, results, 10),
		Pictures: map[string][]page.PictureFile{r.Item.ID: {{Title: "Deviation <of runs>", Path: "deviation/a.png"}}},
	}
	if _, err := page.Write(t.Context(), store, testCampaign(), summaryOf(t, results, selection.First), galleryOf(t, results, 10), with); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store.Export(t, dir)
	index := filepath.Join(dir, KeyPage)
	addProbe(t, index, `
  const texts = (selector) => [...document.querySelectorAll(selector)].map((n) => n.textContent).join(";");
  document.querySelector(".item .enlarge[data-kind=further]").click();
  await pause(100);
  out.titles = texts(".item:first-child figcaption");
  out.panels = texts("#stage figcaption strong");
  out.scores = texts(".item:first-child .figures dt") + ":" + texts(".item:first-child .figures dd");
  out.ratios = [...document.querySelectorAll(".figures > div:last-child dd")].map((d) => d.className + d.textContent);`)
	document := browse(t, index, "")
	for name, want := range map[string]string{
		"titles":        "Truth;Measurement;Restored;Deviation &lt;of runs&gt;",
		"panels":        "Truth;Measurement;ddiff;Deviation &lt;of runs&gt;",
		"scores":        "PSNR;Degraded;Gain;SSIM;lpips_vgg;Residual:25.00 dB;20.00 dB;+5.00 dB;0.700;0.1234;1.40 σ²",
		"ratios":        "1.40 σ²,1.50 σ²,loss1.50 σ²!",
		"images-broken": "0",
	} {
		if got := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(state(t, document, name)); got != want {
			t.Errorf("data-%s = %q, want %q", name, got, want)
		}
	}
}
