package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/tune"
	"ddiff/manifest"
)

// tuned is the JSON of ddiff tune.
type tuned struct {
	tune.Record
	Tests []struct {
		Task, Method string
		Cells        int
		Chosen       []string
		PSNR         tune.Estimate
		Images       []struct {
			Name, SHA256, Settings string
			Fold                   int
			PSNR                   float64
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
	t.Parallel()
	dir, out := photographs(t, "astronaut", "chelsea", "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	args := []string{
		dir, "--task", "hdr", "--method", "ddiff,ddiff_hqs", "--steps", "3", "--size", "32", "--set", "gamma0=0.001,4,8",
		"--test-images", "coffee", "--equal-cost", "-o", out,
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
		if len(test.Images) != 1 || test.Images[0].Name != "coffee" || test.Images[0].PSNR != test.PSNR.Mean {
			t.Errorf("test images %+v, want coffee alone", test.Images)
		}
		// The means of the record are those of the stored results.
		for _, cell := range race.Cells {
			sum, n := 0.0, 0
			for _, r := range results {
				if r.Item.Method == race.Method && r.Item.Name != "coffee" && strings.Contains(cell.Key, fmt.Sprintf("gamma0=%g;", gamma0(t, r))) {
					sum, n = sum+*r.Metrics.PSNR, n+1
				}
			}
			if n != cell.Images || n == 0 || abs(sum/float64(n)-cell.Value.Mean) > 1e-9 || cell.Evaluations != 3*n {
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
	campaign := ddiff(t, "run", filepath.Join(out, "tuned.yaml"), "--device", "cpu", "--threads", "1")
	wantCode(t, campaign, 0)
	wantMessage(t, campaign, "2 items, 2 of them are done, 0 to do")
}

func abs(x float64) float64 { return max(x, -x) }

func gamma0(t *testing.T, r manifest.Result) float64 {
	t.Helper()
	var s struct{ Gamma0 float64 }
	must(t, json.Unmarshal(r.Item.Solver, &s))
	return s.Gamma0
}

// wantItemsAtLeast reads all results of an output.
func wantItemsAtLeast(t *testing.T, out string, n int) []manifest.Result {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(out, "items", "*", manifest.FileResult))
	must(t, err)
	var all []manifest.Result
	for _, path := range paths {
		var r manifest.Result
		must(t, json.Unmarshal(read(t, path), &r))
		all = append(all, r)
	}
	if len(all) < n {
		t.Fatalf("%d results, want at least %d", len(all), n)
	}
	return all
}
