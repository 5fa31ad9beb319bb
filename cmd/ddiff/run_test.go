package main_test

import (
	"encoding/csv"
	"encoding/json"
	"image"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// TestRunOnImages runs without a campaign file, and checks all files of a run.
func TestRunOnImages(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "chelsea", "coffee"), filepath.Join(t.TempDir(), "out")
	args := []string{"--images", dir, "--task", "inpaint_random,super_resolution", "--steps", "10", "--out", out}
	first := ddiff(t, small(args...)...)
	wantCode(t, first, 0)
	wantCounts(t, first, 4, 0, 0, out)
	wantMessage(t, first, "4 items, 0 of them are done, 4 to do")
	for _, want := range []string{"super_resolution", "inpaint_random", "PSNR", "SSIM", "residual", "time", "degraded", "report: " + filepath.Join(out, "index.html")} {
		if !strings.Contains(first.stdout, want) {
			t.Errorf("the table lacks %q\n%v", want, first)
		}
	}
	for id, r := range wantItems(t, out, 4) {
		checkItem(t, out, id, r)
	}
	checkReport(t, out)

	before := stamps(t, out)
	second := ddiff(t, small(args...)...)
	wantCode(t, second, 0)
	wantCounts(t, second, 4, 0, 0, out)
	wantMessage(t, second, "4 items, 4 of them are done, 0 to do")
	if !maps.Equal(stamps(t, out), before) {
		t.Error("the second run has changed the files of the items")
	}
}

// checkItem checks the files of one item of TestRunOnImages.
func checkItem(t *testing.T, out, id string, r item.Result) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file(out, id, item.FileResult)))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"measurement.npy", "measurement.png", "restored.png", "result.json", "trace.json", "truth.png"}
	side := 16
	if r.Item.Task == "inpaint_random" {
		want, side = slices.Insert(want, 0, "mask.npy"), 64
	}
	if !slices.Equal(names, want) || len(r.Artifacts) != len(want)-1 {
		t.Errorf("item %s has the files %v and names %d artifacts, want %v", r.Item.Name, names, len(r.Artifacts), want)
	}
	for name, side := range map[string]int{item.FileTruth: 64, item.FileRestored: 64, item.FileMeasurement: side} {
		if got := decode(t, read(t, file(out, id, name))).Bounds().Size(); got != image.Pt(side, side) {
			t.Errorf("item %s: %s is of %v, want %d×%d", r.Item.Name, name, got, side, side)
		}
	}
	tr := trace(t, out, id)
	for _, name := range []string{"rho", "data_norm", "primal_norm", "dual_norm"} {
		if n := len(tr[name]); n != 10 || len(tr["timestep"]) != n {
			t.Errorf("item %s: the trace has %d entries of %s and %d of timestep, want 10", r.Item.Name, n, name, len(tr["timestep"]))
		}
	}
	m := r.Metrics
	if !m.Has("psnr", "ssim", "residual", "baseline_psnr", "baseline_ssim") {
		t.Errorf("item %s lacks a metric: %+v", r.Item.Name, m)
	}
	if r.Steps != 10 || !(r.Seconds > 0) || r.Runtime.Provider != "cpu" || r.Runtime.Threads != 1 || r.Runtime.Library == "" || len(r.MetricIDs) != len(metric.Builtin()) {
		t.Errorf("the record of item %s is incomplete: %+v", r.Item.Name, r)
	}
}

// checkReport checks the report of TestRunOnImages.
func checkReport(t *testing.T, out string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(string(read(t, filepath.Join(out, "results.csv"))))).ReadAll()
	must(t, err)
	if got := strings.Join(rows[0], ","); !strings.HasPrefix(got, "item,image,task,params,sigma,photons,size,prior,preset,method,settings,precision,run,seed,outcome,reason,psnr,baseline_psnr,gain,ssim,") || len(rows) != 5 {
		t.Errorf("results.csv has the header %q and %d rows, want 5", got, len(rows))
	}
	for _, row := range rows[1:] {
		if _, err := os.Stat(file(out, row[0], item.FileResult)); err != nil {
			t.Errorf("results.csv names an item without a result: %v", err)
		}
	}
	page := string(read(t, filepath.Join(out, "index.html")))
	for _, want := range []string{"chelsea", "coffee", "super_resolution", "inpaint_random"} {
		if !strings.Contains(page, want) {
			t.Errorf("index.html does not mention %s", want)
		}
	}
	for _, task := range []string{"super_resolution", "inpaint_random"} {
		sheet := decode(t, read(t, filepath.Join(out, "sheets", task+".png"))).Bounds()
		if sheet.Dx() < 3*64 || sheet.Dy() < 2*64 {
			t.Errorf("the contact sheet of %s is of %v", task, sheet.Size())
		}
	}
}

// TestRunOnCampaign runs a campaign file from another directory, with flags that override it.
func TestRunOnCampaign(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := photographs(t, "chelsea", "coffee", "rocket")
	write(t, filepath.Join(dir, "night.yaml"), []byte(`
dataset: {path: list.csv, size: 64}
tasks: [hdr]
methods: [ddiff, diff_pnp_admm]
runs: 2
steps: 300
output: elsewhere
`))
	// The two names are the same picture, for different tasks.
	write(t, filepath.Join(dir, "list.csv"), []byte("image,name,task\ncoffee.png,cup,\ncoffee.png,mug,gaussian_deblur\n"))
	cmd := command(t, "run", filepath.Join(dir, "night.yaml"), "--steps", "10", "--out", "here", "--threads", "1", "--quiet")
	cmd.Dir = t.TempDir()
	e := end(t, cmd)
	wantCode(t, e, 0)
	wantCounts(t, e, 8, 0, 0, "here")
	if e.stderr != "" {
		t.Errorf("a quiet run says %q", e.stderr)
	}
	seen := map[string]int{}
	for _, r := range wantItems(t, filepath.Join(cmd.Dir, "here"), 8) {
		seen[r.Item.Name+" "+r.Item.Task+" "+r.Item.Method]++
		if r.Steps != 10 {
			t.Errorf("item %s made %d steps, the flag says 10", r.Item.Name, r.Steps)
		}
	}
	want := map[string]int{"cup hdr ddiff": 2, "cup hdr diff_pnp_admm": 2, "mug gaussian_deblur ddiff": 2, "mug gaussian_deblur diff_pnp_admm": 2}
	if !maps.Equal(seen, want) {
		t.Errorf("items %v, want %v", seen, want)
	}
}

// TestEqualRuns: several runs without noise are named before anything runs, also to a quiet program.
func TestEqualRuns(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	write(t, filepath.Join(dir, "c.yaml"), []byte("dataset: {path: coffee.png, size: 64}\ntasks: [denoise]\nmethods: [ddiff, diffpir]\nruns: 2\n"))
	e := end(t, command(t, "run", filepath.Join(dir, "c.yaml"), "--dry-run", "--quiet"))
	wantCode(t, e, 0)
	if !strings.HasPrefix(e.stderr, "warning: all runs are equal of ddiff in denoise: ") || strings.Count(e.stderr, "\n") != 1 {
		t.Errorf("stderr %q", e.stderr)
	}
}

// TestRunJSON reads the lines for scripts, for new results and for results of an earlier run.
func TestRunJSON(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "chelsea", "coffee"), filepath.Join(t.TempDir(), "out")
	// Equal bytes are computed once, and are two items.
	copyFile(t, photograph("coffee"), filepath.Join(dir, "tea.png"))
	for _, round := range []string{"new", "found"} {
		e := restore(t, "--images", dir, "--task", "hdr", "--steps", "10", "--out", out, "--json")
		wantCode(t, e, 0)
		if e.stderr != "" {
			t.Errorf("%s: stderr has %q", round, e.stderr)
		}
		lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
		var names []string
		for _, line := range lines[:len(lines)-1] {
			var r item.Result
			must(t, json.Unmarshal([]byte(line), &r))
			if r.Outcome != item.OutcomeDone || !r.Metrics.Has("psnr") {
				t.Errorf("%s: line of %s has the outcome %q, metrics %+v", round, r.Item.Name, r.Outcome, r.Metrics)
			}
			names = append(names, r.Item.Name)
		}
		slices.Sort(names)
		if want := []string{"chelsea", "coffee", "tea"}; !slices.Equal(names, want) {
			t.Errorf("%s: items %v, want %v", round, names, want)
		}
		var counts map[string]any
		must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &counts))
		if want := map[string]any{"done": 3.0, "failed": 0.0, "dead": 0.0, "pending": 0.0, "out": out, "left_out": []any{}}; !reflect.DeepEqual(counts, want) {
			t.Errorf("%s: last line %v, want %v", round, counts, want)
		}
	}
	wantItems(t, out, 2)
}
