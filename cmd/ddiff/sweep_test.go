package main_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSweepSolvesOnlyNewCells runs a 2×2 sweep over two images twice, and then one more cell.
func TestSweepSolvesOnlyNewCells(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	sweep := func(gamma0, sigma string) []string {
		return []string{dir, "--task", "hdr", "--steps", "3", "--size", "32", "--set", "gamma0=" + gamma0, "--set", "sigma=" + sigma, "-o", out}
	}
	plan := restore(t, append(sweep("8,16", "0.05,0.1"), "--dry-run")...)
	wantCode(t, plan, 0)
	wantLine(t, plan, "items=8 done=0 to_do=8 failed=0")
	wantLine(t, plan, "hdr", "ddiff", "σ 0.05, gamma0=16", "2", "0", "2", "0")
	first := restore(t, sweep("8,16", "0.05,0.1")...)
	wantCode(t, first, 0)
	wantCounts(t, first, 8, 0, 0, out)
	wantLine(t, first, "hdr", "0.05", "ddiff", "gamma0=16", "2  ")
	if n := strings.Count(first.stdout, "\nhdr "); n != 4 {
		t.Errorf("the table has %d rows, want 4\n%v", n, first)
	}

	unchanged := func(before map[string]stamp) {
		t.Helper()
		after := stamps(t, out)
		for path, stamp := range before {
			if after[path] != stamp {
				t.Errorf("the run has changed %s", path)
			}
		}
	}
	before := stamps(t, out)
	wantMessage(t, restore(t, sweep("8,16", "0.05,0.1")...), "8 items, 8 of them are done, 0 to do")
	unchanged(before)
	wantMessage(t, restore(t, sweep("8", "0.05,0.2")...), "4 items, 2 of them are done, 2 to do")
	unchanged(before)
	wantItems(t, out, 10)

	// A campaign file with lists names the same cells.
	file := filepath.Join(t.TempDir(), "sweep.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\ntasks: [hdr]\nsteps: 3\nsigma: [0.05, 0.1]\n"+
		"solver: {gamma0: [8, 16]}\noutput: %s\n", dir, out), 0o644))
	plan = restore(t, file, "--size", "32", "--dry-run", "--json")
	wantCode(t, plan, 0)
	var counts struct {
		Groups []struct{ Cell string }
		Done   int
	}
	must(t, json.Unmarshal([]byte(plan.stdout), &counts))
	if counts.Done != 8 || len(counts.Groups) != 4 {
		t.Errorf("the file's plan has %d done items in %d cells, want 8 in 4", counts.Done, len(counts.Groups))
	}
}

// TestFlagReplacesList: a flag in place of a list of the file leaves the cells of the other lists, each once. Tasks that the
// file itself repeats stay an error.
func TestFlagReplacesList(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	write := func(tasks string) string {
		file := filepath.Join(t.TempDir(), "sweep.yaml")
		must(t, os.WriteFile(file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\ntasks: %s\nsteps: [3, 4]\nsigma: [0.01, 0.05]\n"+
			"solver: {gamma0: [4, 8, 16]}\n", dir, tasks), 0o644))
		return file
	}
	file := write("[hdr, inpaint_box]")
	for _, tt := range []struct {
		flags string
		items int
	}{
		{"--sigma 0.02", 12},
		{"--steps 5", 12},
		{"--solver gamma0=5", 8},
		{"--set gamma0=5", 8},
		{"--set sigma=0.1,0.2,0.3", 36},
		{"--set gamma0=5 --steps 5 --sigma 0.1", 2},
	} {
		args := append([]string{file, "--dry-run", "-o", filepath.Join(t.TempDir(), "out")}, strings.Fields(tt.flags)...)
		e := ddiff(t, append([]string{"run"}, args...)...)
		wantCode(t, e, 0)
		wantLine(t, e, fmt.Sprintf("items=%d done=0 to_do=%d failed=0", tt.items, tt.items))
	}
	e := ddiff(t, "run", write("[hdr, hdr]"), "--dry-run", "--sigma", "0.02")
	wantCode(t, e, 2)
	wantMessage(t, e, "is repeated with the same settings")
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	image := photograph("coffee")
	for _, tt := range []struct{ set, want string }{
		{"sigma", `--set: "sigma" is not NAME=VALUE`},
		{"sigma=0.1,0.1", "a value is empty or repeated"},
		{"sigma=0.1,,0.2", "a value is empty or repeated"},
		{"sigma=much", `"much" is not a finite number, and not auto`},
		{"sigma=7", "--set sigma=7: 7 is out of range"},
		{"steps=3.5", `"3.5" is not an integer`},
		{"gama0=3", `unknown parameter of the campaign's tasks and methods "gama0" (did you mean "gamma0"?)`},
		{"super_resolution.factor=2", `unknown parameter of the campaign's tasks and methods "super_resolution.factor"`},
		{"gamma0=a", "gamma0"},
		{"scale=-1,2", "scale"},
	} {
		wantRefusal(t, restore(t, image, "--task", "hdr", "--set", tt.set, "--dry-run", "-o", filepath.Join(t.TempDir(), "out")), 2, tt.want)
	}
}

// TestMethodRestrictsTasks: --method is a choice among the methods of each task of a file, also of ddiff tune; tasks without any are left out. --task keeps
// the settings that the file has for a task.
func TestMethodRestrictsTasks(t *testing.T) {
	t.Parallel()
	dir, file := photographs(t, "coffee", "chelsea", "rocket"), filepath.Join(t.TempDir(), "search.yaml")
	write(t, file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\nmethods: [ddiff, dps, dmplug]\ntasks:\n"+
		"  - {name: hdr, steps: 3, methods: [ddiff, dmplug], solver: {gamma0: [4, 8]}}\n"+
		"  - {name: hdr, steps: 3, methods: [dps], solver: {scale: [0.1, 0.3]}}\n", dir))
	plan := ddiff(t, "run", file, "--method", "dps,ddiff", "--dry-run")
	wantCode(t, plan, 0)
	wantLine(t, plan, "items=12 done=0 to_do=12")
	wantLine(t, ddiff(t, "run", file, "--method", "dps", "--dry-run"), "items=6 done=0 to_do=6")
	wantLine(t, ddiff(t, "tune", file, "--method", "dps", "--test-images", "coffee", "--dry-run"), "tune=2 test=1 folds=1 settings=2")
	wantLine(t, ddiff(t, "run", "../../examples/methods/equal_cost.yaml", "--method", "ddiff,daps", "--dry-run"), "items=96 done=0 to_do=96")
	wantLine(t, ddiff(t, "run", "../../examples/methods/equal_cost.yaml", "--task", "hdr", "--dry-run"), "items=54 done=0 to_do=54")
	e := ddiff(t, "run", file, "--method", "daps", "--dry-run")
	if want := "ddiff: --method: no task of the campaign has the method daps; the tasks have ddiff, dmplug, dps\n"; e.code != 2 || e.stderr != want {
		t.Errorf("want %q and exit code 2\n%v", want, e)
	}
}

// TestIdleValueOfFile: a value of a file that the command line leaves without an effect is no error, one of the command line is.
func TestIdleValueOfFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "campaign.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\ntasks: [gaussian_deblur, hdr]\nsolver: {gamma0: 3}\n", photographs(t, "coffee")), 0o644))
	for flags, code := range map[string]int{
		"": 0, "--task gaussian_deblur": 0, "--task gaussian_deblur --solver gamma0=5": 2, "--task gaussian_deblur --set gamma0=8,20": 2, "--task hdr --set gamma0=8,20": 0,
	} {
		e := ddiff(t, append([]string{"run", file, "--dry-run", "-o", filepath.Join(t.TempDir(), "out")}, strings.Fields(flags)...)...)
		wantCode(t, e, code)
		if code != 0 {
			wantMessage(t, e, "has no effect on gaussian_deblur with data_step: exact; set data_step: gradient, or leave gamma0 out")
		}
	}
}

// TestSweepIsNeverPooled sweeps deblurring over three noise levels and super-resolution over two factors: each cell is one
// row of two images, with the t interval of two values.
func TestSweepIsNeverPooled(t *testing.T) {
	t.Parallel()
	file, out := filepath.Join(t.TempDir(), "sweep.yaml"), filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `dataset: {path: %s, size: 32}
tasks:
  - {name: gaussian_deblur, params: {std: 1}, sigma: [0.02, 0.05, 0.1]}
  - {name: super_resolution, params: {factor: [2, 8]}}
steps: 3
output: %s
`, photographs(t, "coffee", "rocket"), out), 0o644))
	e := restore(t, file, "--size", "32")
	wantCode(t, e, 0)
	wantCounts(t, e, 10, 0, 0, out)

	// The PSNR of each cell's items, by hand from their results.
	type key struct {
		task          string
		factor, sigma float64
	}
	cells := map[key][]float64{}
	for _, r := range wantItems(t, out, 10) {
		k := key{r.Item.Task, r.Item.Params["factor"], r.Item.Sigma}
		cells[k] = append(cells[k], r.Metrics["psnr"])
	}
	type estimate struct {
		N            int
		Measurements int
		Mean         float64
		HalfWidth    float64 `json:"half_width"`
	}
	var summary struct {
		Rows []struct {
			Task, Params string
			Sigma        float64
			Figures      map[string]estimate
			Images       int
		}
	}
	must(t, json.Unmarshal(read(t, filepath.Join(out, "summary.json")), &summary))
	if len(summary.Rows) != 5 || len(cells) != 5 {
		t.Fatalf("%d rows of %d cells, want 5", len(summary.Rows), len(cells))
	}
	for _, r := range summary.Rows {
		k := key{r.Task, 0, r.Sigma}
		if _, err := fmt.Sscanf(r.Params, "factor=%g", &k.factor); err != nil && r.Task == "super_resolution" {
			t.Fatalf("%s: %v", r.Params, err)
		}
		psnr := cells[k]
		if len(psnr) != 2 {
			t.Errorf("%v has the PSNRs %v", k, psnr)
			continue
		}
		mean, half := (psnr[0]+psnr[1])/2, 12.706204736432095*math.Abs(psnr[0]-psnr[1])/2
		got := r.Figures["psnr"]
		if r.Images != 2 || got.N != 2 || got.Measurements != 0 || !(math.Abs(got.Mean-mean) <= 1e-6) || !(math.Abs(got.HalfWidth-half) <= 1e-6*half) {
			t.Errorf("%v: %+v of %d images, want %g ± %g of 2", k, got, r.Images, mean, half)
		}
	}
	for _, cell := range []string{"σ 0.02", "σ 0.1"} {
		if strings.Contains(e.stdout, cell+" − ") {
			t.Errorf("different problems are compared:\n%s", e.stdout)
		}
	}
	wantLine(t, e, "gaussian_deblur ", " 0.02 ", " 2  ")
	wantLine(t, e, "super_resolution", "factor=8", " 2  ")
	wantNames(t, out,
		"coffee.gaussian_deblur.sigma=0.02.png", "coffee.gaussian_deblur.sigma=0.05.png", "coffee.gaussian_deblur.sigma=0.1.png",
		"coffee.super_resolution.factor=2.sigma=0.05.png", "coffee.super_resolution.factor=8.sigma=0.05.png",
		"rocket.gaussian_deblur.sigma=0.02.png", "rocket.gaussian_deblur.sigma=0.05.png", "rocket.gaussian_deblur.sigma=0.1.png",
		"rocket.super_resolution.factor=2.sigma=0.05.png", "rocket.super_resolution.factor=8.sigma=0.05.png",
	)
}

// TestThreeCampaignsInOneOutput: each campaign reports on itself, the third one needs two items that the first two have not
// solved, and ddiff report has all.
func TestThreeCampaignsInOneOutput(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee", "rocket")
	out := filepath.Join(t.TempDir(), "out")
	run := func(tasks string, done int) ended {
		t.Helper()
		e := restore(t, dir, "--task", tasks, "--steps", "3", "--size", "32", "-o", out)
		wantCode(t, e, 0)
		wantCounts(t, e, done, 0, 0, out)
		if n := strings.Count(string(read(t, filepath.Join(out, "results.csv"))), ",done,"); n != done {
			t.Errorf("%s: results.csv has %d items, want %d", tasks, n, done)
		}
		return e
	}
	run("hdr", 2)
	run("inpaint_box", 2)
	if sheets, _ := filepath.Glob(filepath.Join(out, "sheets", "*.png")); len(sheets) != 1 || filepath.Base(sheets[0]) != "inpaint_box.png" {
		t.Errorf("contact sheets %v, want that of the second campaign", sheets)
	}

	copyFile(t, photograph("chelsea"), filepath.Join(dir, "chelsea.png"))
	before := stamps(t, out)
	third := run("hdr,inpaint_box", 6)
	wantMessage(t, third, "6 items, 4 of them are done, 2 to do")
	after := stamps(t, out)
	for path, stamp := range before {
		if after[path] != stamp {
			t.Errorf("the third campaign has changed %s", path)
		}
	}
	wantLine(t, third, "hdr ", " 3  ")
	e := ddiff(t, "report", out)
	wantCode(t, e, 0)
	wantLine(t, e, "hdr ", " 3  ")
	wantLine(t, e, "inpaint_box", " 3  ")
}

// TestNumbersRefuse: what must not be compared, ranked or set is one line and exit code 2. The score package tests two
// versions of a metric.
func TestNumbersRefuse(t *testing.T) {
	t.Parallel()
	image := photograph("coffee")
	a := tiny(t, image, "--task", "hdr", "--steps", "3", "--size", "32", "--runs", "2")
	b := tiny(t, image, "--task", "hdr", "--steps", "3", "--size", "32", "--seed", "9")
	file := filepath.Join(t.TempDir(), "campaign.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "dataset: {path: %s}\ntasks: [hdr]\nsolver: {gama0: [1, 2]}\n", image), 0o644))
	for _, tt := range []struct {
		args string
		want string
	}{
		{"compare " + a + " " + b, "different measurements: 1 of A, 1 of B, 0 in common"},
		{"compare " + a + " " + a + " --select best_psnr", "would rank an oracle"},
		{"compare " + a + " " + a + " --select best_ssim", "would rank an oracle"},
		{"run " + image + " --task hdr --solver gama0=1", "gama0"},
		{"run " + image + " --task hdr --set gama0=1,2", `unknown parameter of the campaign's tasks and methods "gama0" (did you mean "gamma0"?)`},
		{"run " + file, "gama0"},
	} {
		args := strings.Fields(tt.args)
		if args[0] == "run" {
			args = append(args, "-o", filepath.Join(t.TempDir(), "out"))
		}
		e := ddiff(t, args...)
		wantRefusal(t, e, 2, tt.want)
		if e.stdout != "" {
			t.Errorf("%s: stdout has %q", tt.args, e.stdout)
		}
	}
	// The table of an oracle marks its figures and prints none in bold.
	e := ddiff(t, "report", a, "--select", "best_psnr", "--format", "md")
	wantCode(t, e, 0)
	if strings.Contains(e.stdout, "**") || !strings.Contains(e.stdout, "an upper bound, not a ranking") {
		t.Errorf("the oracle's table:\n%s", e.stdout)
	}
}
