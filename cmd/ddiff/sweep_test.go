package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSweepSolvesOnlyNewCells runs a 3×3 sweep over six images twice, and then one more cell.
func TestSweepSolvesOnlyNewCells(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "astronaut", "chelsea", "coffee", "hubble_deep_field", "retina", "rocket"), filepath.Join(t.TempDir(), "out")
	sweep := func(gamma0, sigma string) []string {
		return []string{dir, "--task", "hdr", "--steps", "3", "--size", "32", "--set", "gamma0=" + gamma0, "--set", "sigma=" + sigma, "-o", out}
	}
	plan := restore(t, append(sweep("4,8,16", "0.01,0.05,0.1"), "--dry-run")...)
	wantCode(t, plan, 0)
	wantLine(t, plan, "items=54 done=0 to_do=54 failed=0")
	wantLine(t, plan, "hdr", "ddiff", "σ 0.05, gamma0=16", "6", "0", "6", "0")
	wantLine(t, plan, "time: ")
	first := restore(t, sweep("4,8,16", "0.01,0.05,0.1")...)
	wantCode(t, first, 0)
	wantCounts(t, first, 54, 0, 0, out)
	wantLine(t, first, "hdr", "0.05", "ddiff", "gamma0=16", "6  ")
	if n := strings.Count(first.stdout, "\nhdr "); n != 9 {
		t.Errorf("the table has %d rows, want 9\n%v", n, first)
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
	wantMessage(t, restore(t, sweep("4,8,16", "0.01,0.05,0.1")...), "54 items, 54 of them are done, 0 to do")
	unchanged(before)
	wantMessage(t, restore(t, sweep("8", "0.05,0.2")...), "12 items, 6 of them are done, 6 to do")
	unchanged(before)
	wantItems(t, out, 60)

	// A campaign file with lists names the same cells.
	file := filepath.Join(t.TempDir(), "sweep.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "dataset: {path: %s, size: 32}\ntasks: [hdr]\nsteps: 3\nsigma: [0.01, 0.05, 0.1]\n"+
		"solver: {gamma0: [4, 8, 16]}\noutput: %s\n", dir, out), 0o644))
	plan = restore(t, file, "--size", "32", "--dry-run", "--json")
	wantCode(t, plan, 0)
	var counts struct {
		Groups []struct{ Cell string }
		Done   int
	}
	must(t, json.Unmarshal([]byte(plan.stdout), &counts))
	if counts.Done != 54 || len(counts.Groups) != 9 {
		t.Errorf("the file's plan has %d done items in %d cells, want 54 in 9", counts.Done, len(counts.Groups))
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
		{"super_resolution.factor=2", `unknown parameter of the campaign's tasks and methods "factor"`},
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
	wantLine(t, ddiff(t, "run", "../../examples/methods/equal_cost.yaml", "--task", "hdr", "--dry-run"), "items=42 done=0 to_do=42")
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
			wantMessage(t, e, "has no effect on gaussian_deblur with data_step: proximal; set data_step: gradient, or leave gamma0 out")
		}
	}
}
