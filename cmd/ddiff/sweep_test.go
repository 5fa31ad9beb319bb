package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSweepSolvesOnlyNewCells runs a 3×3 sweep over two images twice, and then with one more cell.
func TestSweepSolvesOnlyNewCells(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "coffee", "rocket"), filepath.Join(t.TempDir(), "out")
	sweep := func(sigma string) []string {
		return []string{dir, "--task", "hdr", "--steps", "3", "--size", "32", "--set", "gamma0=4,8,16", "--set", sigma, "-o", out}
	}
	plan := restore(t, append(sweep("sigma=0.01,0.05,0.1"), "--dry-run")...)
	wantCode(t, plan, 0)
	wantLine(t, plan, "items=18 done=0 to_do=18 failed=0")
	wantLine(t, plan, "hdr", "ddiff", "σ 0.05, gamma0=16", "2", "0", "2", "0")
	wantLine(t, plan, "time: ")
	first := restore(t, sweep("sigma=0.01,0.05,0.1")...)
	wantCode(t, first, 0)
	wantCounts(t, first, 18, 0, 0, out)
	wantLine(t, first, "hdr", "0.05", "ddiff", "gamma0=16", "2  ")
	if n := strings.Count(first.stdout, "\nhdr "); n != 9 {
		t.Errorf("the table has %d rows, want 9\n%v", n, first)
	}

	before := stamps(t, out)
	wantMessage(t, restore(t, sweep("sigma=0.01,0.05,0.1")...), "18 items, 18 of them are done, 0 to do")
	after := stamps(t, out)
	for path, stamp := range before {
		if after[path] != stamp {
			t.Errorf("the second run has changed %s", path)
		}
	}
	wantMessage(t, restore(t, sweep("sigma=0.01,0.05,0.1,0.2")...), "24 items, 18 of them are done, 6 to do")

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
	if counts.Done != 18 || len(counts.Groups) != 9 {
		t.Errorf("the file's plan has %d done items in %d cells, want 18 in 9", counts.Done, len(counts.Groups))
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
		{"sigma=much", `"much" is not a number`},
		{"sigma=7", "--set sigma=7: 7 is out of range"},
		{"steps=3.5", `"3.5" is not an integer`},
		{"gama0=3", `no task of the campaign and none of its methods has "gama0"`},
		{"super_resolution.factor=2", `has "super_resolution.factor"`},
		{"gamma0=a", "gamma0"},
		{"scale=-1,2", "scale"},
	} {
		e := restore(t, image, "--task", "hdr", "--set", tt.set, "--dry-run", "-o", filepath.Join(t.TempDir(), "out"))
		if e.code != 2 || !strings.Contains(e.stderr, tt.want) || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want 2 and one line with %q\n%v", tt.set, e.code, tt.want, e)
		}
	}
}
