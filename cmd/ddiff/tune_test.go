package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/statistic"
	"ddiff/internal/tune"
	"ddiff/restore/item"
)

// tuned is the JSON of ddiff tune.
type tuned struct {
	tune.Record
	Tests []struct {
		Task, Method string
		Cells        int
		Chosen       []string
		Metrics      map[string]statistic.Estimate
		Images       []struct {
			Name, SHA256, Settings string
			Fold                   int
			Metrics                item.Metrics
		}
	}
	Stopped, NotRun int
	TestEvaluations int `json:"test_evaluations"`
	Campaigns       []string
}

// tuneImages runs ddiff tune on the CPU with one thread.
func tuneImages(t *testing.T, args ...string) ended {
	t.Helper()
	return ddiff(t, append([]string{"tune", "--device", "cpu", "--threads", "1"}, args...)...)
}

func parseTuned(t *testing.T, text string) tuned {
	t.Helper()
	var out tuned
	must(t, json.Unmarshal([]byte(text), &out))
	return out
}

// TestTune chooses settings on some images, reports them on the others, resumes without work, and writes a campaign that
// finds all its results.
func TestTune(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, out := photographs(t, "astronaut", "chelsea", "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	args := []string{
		dir, "--task", "hdr", "--method", "ddiff,ddiff_hqs", "--steps", "3", "--size", "32", "--set", "gamma0=0.001,4,8",
		"--test-images", "coffee", "-o", out,
	}
	plan := tuneImages(t, append(args, "--dry-run")...)
	wantCode(t, plan, 0)
	wantLine(t, plan, "tune=3 test=1 folds=1 settings=6 out="+out)
	if _, err := os.Stat(out); err == nil {
		t.Error("the dry run has made the output")
	}

	first := tuneImages(t, append(args, "--json")...)
	wantCode(t, first, 0)
	got := parseTuned(t, first.stdout)
	if len(got.Tests) != 2 || len(got.Folds) != 1 || len(got.Folds[0].Tune) != 3 {
		t.Fatalf("%d tests, %d folds", len(got.Tests), len(got.Folds))
	}
	results := wantItemsAtLeast(t, out, 2)
	for k, race := range got.Folds[0].Races {
		test := got.Tests[k]
		if test.Method != race.Method || test.Cells != 3 || !slices.Equal(test.Chosen, []string{race.Chosen}) || strings.Contains(race.Chosen, "gamma0=0.001;") {
			t.Errorf("test %+v of the race that chose %s", test, race.Chosen)
		}
		if len(test.Images) != 1 || test.Images[0].Name != "coffee" || test.Images[0].Metrics["psnr"] == 0 || test.Images[0].Metrics["psnr"] != test.Metrics["psnr"].Mean {
			t.Errorf("test images %+v, want coffee alone", test.Images)
		}
		// The means of the record are those of the stored results.
		for _, cell := range race.Cells {
			sum, n := 0.0, 0
			for _, r := range results {
				if r.Item.Method == race.Method && r.Item.Name != "coffee" && strings.Contains(cell.Key, fmt.Sprintf("gamma0=%g;", gamma0(t, r))) {
					sum, n = sum+r.Metrics["psnr"], n+1
				}
			}
			if n != cell.Images || n == 0 || !(abs(sum/float64(n)-cell.Value.Mean) <= 1e-9) || cell.Evaluations != 3*n {
				t.Errorf("cell %s: %d images, mean %g, %d evaluations; the results are %d with the mean %g",
					cell.Key, cell.Images, cell.Value.Mean, cell.Evaluations, n, sum/float64(n))
			}
		}
	}
	if got.Evaluations != 3*(len(results)-2) || got.TestEvaluations != 3*2 {
		t.Errorf("%d and %d evaluations for %d results", got.Evaluations, got.TestEvaluations, len(results))
	}
	// The report is that of the test images.
	csv := string(read(t, filepath.Join(out, "results.csv")))
	if n := strings.Count(csv, "\n"); n != 3 || strings.Contains(csv, "chelsea") {
		t.Errorf("results.csv has %d lines, want a header and two test results:\n%s", n, csv)
	}

	before := stamps(t, out)
	second := tuneImages(t, append(args, "--json", "--batch", "1")...)
	wantCode(t, second, 0)
	if second.stdout != first.stdout {
		t.Errorf("the second run has another outcome:\n%s\n%s", first.stdout, second.stdout)
	}
	if !maps.Equal(stamps(t, out), before) {
		t.Error("the second run has solved items again")
	}
	// The outcome after the loss of results, as after an interruption, is the same.
	for i, r := range results {
		if i%3 == 0 {
			must(t, os.RemoveAll(filepath.Join(out, "items", r.Item.ID)))
		}
	}
	must(t, os.Remove(filepath.Join(out, "tuning.json")))
	third := tuneImages(t, append(args, "--json")...)
	wantCode(t, third, 0)
	if third.stdout != first.stdout {
		t.Errorf("a resumed tuning has another outcome:\n%s\n%s", first.stdout, third.stdout)
	}
	if string(read(t, filepath.Join(out, "tuning.json"))) == "" || len(wantItemsAtLeast(t, out, len(results))) != len(results) {
		t.Error("the resumed tuning has other results")
	}

	// The table has a row for each method.
	rows := 0
	for line := range strings.Lines(tuneImages(t, args...).stdout) {
		if cells := strings.Fields(line); len(cells) > 8 && cells[0] == "hdr" && strings.HasPrefix(cells[5], "ddiff") {
			rows++
		}
	}
	if rows != 2 {
		t.Errorf("%d rows, want 2", rows)
	}

	// The report of the test images has no note on the tuning; a report that adds the tuning images has one.
	const note = "ddiff tune chose settings with images of the same row"
	if page := string(read(t, filepath.Join(out, "index.html"))); strings.Contains(page, note) || !strings.Contains(page, "Values of a preset were chosen with images") {
		t.Error("the page of the test images has the note on the tuning, or lacks that on the preset")
	}
	table := ddiff(t, "report", out)
	if !strings.Contains(table.stdout, note+", so that its figures are too good: 3 of 4 images of hdr ddiff") {
		t.Errorf("the report of all images lacks the note\n%v", table)
	}
	if clean := ddiff(t, "report", out, "--where", "image=coffee"); strings.Contains(clean.stdout, note) {
		t.Errorf("the report of the test image has the note\n%v", clean)
	}

	campaign := ddiff(t, "run", filepath.Join(out, "tuned.yaml"), "--device", "cpu", "--threads", "1")
	wantCode(t, campaign, 0)
	wantMessage(t, campaign, "2 items, 2 of them are done, 0 to do")
}

// TestTunedCampaign: the campaign of the chosen settings finds the results of the tuning, with an operator file, a prior at a relative path,
// and a parameter at the default that items leave out, for which the preset has another value.
func TestTunedCampaign(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, out := photographs(t, "chelsea", "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	ran := tuneImages(t, dir, "--task", "hdr", "--operator", learnedBlur, "--prior", filepath.Join("..", "..", "internal", "restore", "prior", "bundled", "prior.onnx"),
		"--solver", "answer=x_plus_u", "--solver", "recover=never", "--set", "gamma0=4,8", "--steps", "2", "--size", "128", "--test-images", "coffee", "-o", out)
	wantCode(t, ran, 0)
	wantTested(t, out, 2)
}

// TestTunedFiles: masks and kernels of tasks, and several images, are in the campaign of a tuning. Tasks with two masks have settings of their own.
func TestTunedFiles(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "chelsea", "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	write(t, filepath.Join(dir, "kernel.npy"), npyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1), }", []byte{1}))
	for name, observed := range map[string][]byte{"left": {1, 0}, "right": {0, 1}} {
		write(t, filepath.Join(dir, name+".npy"), npyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (16, 16), }", bytes.Repeat(observed, 128)))
	}
	campaign := filepath.Join(dir, "campaign.yaml")
	write(t, campaign, []byte("dataset: {path: ., size: 16}\nsteps: 2\nsolver: {lambda: [1, 2]}\nsplit: {test: [coffee]}\n"+
		"tasks: [{name: inpaint_box, mask: left.npy}, {name: inpaint_box, mask: right.npy}, {name: gaussian_deblur, kernel: kernel.npy}]\n"))
	wantCode(t, tuneImages(t, campaign, "-o", out), 0)
	wantTested(t, out, 3)
	several := filepath.Join(t.TempDir(), "out")
	wantCode(t, tuneImages(t, filepath.Join(dir, "coffee.png"), filepath.Join(dir, "rocket.png"), filepath.Join(dir, "chelsea.png"), "--task", "denoise",
		"--size", "16", "--steps", "2", "--set", "lambda=1,2", "--test-images", "coffee", "-o", several), 0)
	wantTested(t, several, 1)
	for task, file := range map[string][]string{"inpaint": {"--mask", "left.npy"}, "gaussian_deblur": {"--kernel", "kernel.npy"}} {
		flags := filepath.Join(t.TempDir(), "out")
		wantCode(t, tuneImages(t, filepath.Join(dir, "*.png"), "--task", task, file[0], filepath.Join(dir, file[1]),
			"--size", "16", "--steps", "2", "--set", "lambda=1,2", "--test-images", "coffee", "-o", flags), 0)
		wantTested(t, flags, 1)
	}
	list := filepath.Join(dir, "list.csv")
	write(t, list, []byte("image,mask\nchelsea.png,left.npy\ncoffee.png,\nrocket.png,\n"))
	wantRefusal(t, tuneImages(t, campaign, "--images", list, "-o", out, "--dry-run"), 2, "task inpaint_box has a mask or kernel, and some rows have their own")
	for name, c := range map[string]struct {
		test, more, rows string
		items            int
	}{
		"kernels for another task": {"coffee, coffee-2", ", {name: gaussian_deblur}", "image,task,kernel\nchelsea.png,inpaint_box,\ncoffee.png,inpaint_box,\nrocket.png,inpaint_box,\n" +
			"chelsea.png,gaussian_deblur,kernel.npy\ncoffee.png,gaussian_deblur,kernel.npy\nrocket.png,gaussian_deblur,kernel.npy\n", 2},
		"a mask in every row": {"coffee", "", "image,mask\nchelsea.png,left.npy\ncoffee.png,right.npy\nrocket.png,left.npy\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			write(t, list, []byte(c.rows))
			write(t, campaign, []byte("dataset: {path: list.csv, size: 16}\nsteps: 2\nsolver: {lambda: [1, 2]}\nsplit: {test: ["+c.test+"]}\n"+
				"tasks: [{name: inpaint_box, mask: left.npy}"+c.more+"]\n"))
			wantCode(t, tuneImages(t, campaign, "-o", out), 0)
			wantTested(t, out, c.items)
		})
	}
}

// wantTested checks that the campaign of a tuning has a number of items, which the tuning has restored.
func wantTested(t *testing.T, out string, items int) {
	t.Helper()
	plan := ddiff(t, "run", filepath.Join(out, "tuned.yaml"), "--dry-run", "--json")
	wantCode(t, plan, 0)
	var counts struct{ Items, Done int }
	must(t, json.Unmarshal([]byte(plan.stdout), &counts))
	if counts.Items != items || counts.Done != items {
		t.Errorf("%+v, want %d items with stored results:\n%s", counts, items, read(t, filepath.Join(out, "tuned.yaml")))
	}
}

func abs(x float64) float64 { return max(x, -x) }

func gamma0(t *testing.T, r item.Result) float64 {
	t.Helper()
	var s struct{ Gamma0 float64 }
	must(t, json.Unmarshal(r.Item.Solver, &s))
	return s.Gamma0
}

// wantItemsAtLeast reads all results of an output.
func wantItemsAtLeast(t *testing.T, out string, n int) []item.Result {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(out, "items", "*", item.FileResult))
	must(t, err)
	var all []item.Result
	for _, path := range paths {
		var r item.Result
		must(t, json.Unmarshal(read(t, path), &r))
		all = append(all, r)
	}
	if len(all) < n {
		t.Fatalf("%d results, want at least %d", len(all), n)
	}
	return all
}

// TestTuneByFolds tests each image once, with settings that were chosen on the others, also where an image fails.
func TestTuneByFolds(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir, out := photographs(t, "astronaut", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"), filepath.Join(t.TempDir(), "out")
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), []byte("no image"), 0o644))
	copyFile(t, photograph("rocket"), filepath.Join(dir, "again.png")) // one image under two names
	args := []string{dir, "--task", "hdr", "--steps", "2", "--size", "16", "--set", "gamma0=4,8", "--folds", "2", "--split-seed", "3", "-o", out, "--json"}
	ran := tuneImages(t, args...)
	wantCode(t, ran, 3) // broken.png
	wantMessage(t, ran, "failed:", "broken")
	got := parseTuned(t, ran.stdout)
	if len(got.Folds) != 2 || len(got.Tests) != 1 || len(got.Tests[0].Chosen) != 2 || got.Tests[0].Metrics["psnr"].N != 6 {
		t.Fatalf("%d folds, tests %+v", len(got.Folds), got.Tests)
	}
	seen := map[string]bool{}
	var values []float64
	for _, img := range got.Tests[0].Images {
		if seen[img.SHA256] {
			t.Errorf("%s is a test image twice", img.Name)
		}
		seen[img.SHA256] = true
		values = append(values, img.Metrics["psnr"])
		fold := got.Folds[img.Fold-1]
		if slices.ContainsFunc(fold.Tune, func(i tune.Image) bool { return i.SHA256 == img.SHA256 }) || img.Settings != fold.Races[0].Chosen {
			t.Errorf("the settings %s of %s were chosen with it, or by another fold", img.Settings, img.Name)
		}
	}
	if want := statistic.Mean(values); !(abs(want.Mean-got.Tests[0].Metrics["psnr"].Mean) <= 1e-12) || !(abs(*want.HalfWidth-*got.Tests[0].Metrics["psnr"].HalfWidth) <= 1e-12) {
		t.Errorf("PSNR %+v, want %+v", got.Tests[0].Metrics["psnr"], want)
	}
	if !slices.Equal(got.Campaigns, []string{"tuned-1.yaml", "tuned-2.yaml"}) {
		t.Errorf("campaigns %v", got.Campaigns)
	}
	items := 0
	for k, name := range got.Campaigns {
		plan := ddiff(t, "run", filepath.Join(out, name), "--dry-run", "--json")
		var counts struct{ Items, Done, Failed int }
		must(t, json.Unmarshal([]byte(plan.stdout), &counts))
		if counts.Done+counts.Failed != counts.Items || counts.Done < len(got.Folds[k].Test) {
			t.Errorf("%s: %+v, want all items done", name, counts)
		}
		items += counts.Done
	}
	if items != 7 { // with the second name
		t.Errorf("the campaigns of both folds have %d items, want 7", items)
	}

	// A report on a tuning image with the chosen settings says so.
	chosen := got.Folds[0].Races[0].Chosen
	if got.Folds[1].Races[0].Chosen != chosen {
		return // the rows of the report differ
	}
	text := ddiff(t, "report", out)
	if strings.Contains(text.stdout, "ddiff tune chose settings") {
		t.Errorf("both folds chose the settings without the image, but the report has a note\n%v", text)
	}
}

// TestTuneRefuses: each wrong use ends with one line that names the remedy, and makes no output.
func TestTuneRefuses(t *testing.T) {
	t.Parallel()
	two := photographs(t, "chelsea", "coffee", "rocket")
	one := photographs(t, "coffee")
	out := filepath.Join(t.TempDir(), "out")
	for want, args := range map[string][]string{
		"1 images to tune and 0 to test, of 1 different images":                             {one, "--task", "hdr", "--set", "gamma0=1,2", "--split-seed", "2"},
		"nothing to choose; give lists, as in --set lambda=1,2,4":                           {two, "--task", "hdr", "--test-images", "coffee"},
		`the pattern "tea" matches no image; the dataset has "chelsea", "coffee", "rocket"`: {two, "--task", "hdr", "--set", "gamma0=1,2", "--test-images", "tea"},
		`image "coffee" matches "c*" of tune and "coffee" of test`:                          {two, "--task", "hdr", "--set", "gamma0=1,2", "--test-images", "coffee", "--tune-images", "c*"},
		"--folds: excludes a share":                                                         {two, "--task", "hdr", "--set", "gamma0=1,2", "--folds", "2", "--tune", "0.5"},
		"--tune: 2 is out of range, want a share above 0 and below 1":                       {two, "--task", "hdr", "--set", "gamma0=1,2", "--tune", "2"},
		`objective "lpips" is none of psnr, ssim, psnr_y, haarpsi, sharpness, min_misfit`:   {two, "--task", "hdr", "--set", "gamma0=1,2", "--objective", "lpips"},
		"select best_psnr: it looks at the truth":                                           {two, "--task", "hdr", "--set", "gamma0=1,2", "--select", "best_psnr"},
	} {
		wantRefusal(t, tuneImages(t, append(args, "--size", "16", "-o", out, "--dry-run")...), 2, want)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused command has made its output")
	}
}

// TestTuneNamesTooSmallImages: HaarPSI needs 16 pixels, which the images with a truth do not have.
func TestTuneNamesTooSmallImages(t *testing.T) {
	t.Parallel()
	ran := tuneImages(t, photographs(t, "chelsea", "coffee", "rocket"), "--task", "hdr", "--steps", "2", "--size", "8", "--objective", "haarpsi",
		"--set", "gamma0=4,8", "--test-images", "coffee", "-q", "-o", filepath.Join(t.TempDir(), "out"))
	wantCode(t, ran, 2)
	wantMessage(t, ran, "has no haarpsi", "or is smaller than the 16 pixels that haarpsi requires", "a larger --size")
}
