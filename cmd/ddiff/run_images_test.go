package main_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// names lists the readable names of an output, sorted, and checks that each leads to a restored image.
func names(t *testing.T, out string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(out, "restored"))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
		path := filepath.Join(out, "restored", e.Name())
		if target, err := os.Readlink(path); err != nil || filepath.IsAbs(target) {
			t.Errorf("%s is no relative link: %q, %v", e.Name(), target, err)
		}
		decode(t, read(t, path))
	}
	return found
}

func wantNames(t *testing.T, out string, want ...string) {
	t.Helper()
	if got := names(t, out); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("restored/ has %q, want %q", got, want)
	}
}

// TestRunOnArguments restores several images, a directory and a file with an odd name, as a shell would expand them.
func TestRunOnArguments(t *testing.T) {
	t.Parallel()
	dir, more := t.TempDir(), photographs(t, "rocket")
	odd := filepath.Join(dir, "tea, {hot} [1] ü.png")
	copyFile(t, photograph("coffee"), odd)
	write(t, filepath.Join(dir, "notes.md"), []byte("not an image"))
	out := filepath.Join(t.TempDir(), "out")
	args := []string{photograph("chelsea"), odd, filepath.Join(dir, "notes.md"), more, "--task", "hdr", "--steps", "5", "-o", out}
	plan := restore(t, append(args, "--dry-run")...)
	wantCode(t, plan, 0)
	wantLine(t, plan, "items=3 done=0 to_do=3 failed=0 out="+out)
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the dry run wrote %s: %v", out, err)
	}
	e := restore(t, args...)
	wantCode(t, e, 0)
	wantCounts(t, e, 3, 0, 0, out)
	wantMessage(t, e, "skipped 1: not an image: notes.md")
	wantItems(t, out, 3)
	wantNames(t, out, "chelsea.hdr.png", "rocket.hdr.png", "tea, {hot} [1] ü.hdr.png")

	// All tasks that need no file: the results of the first run are found.
	args[len(args)-5] = "all"
	plan = restore(t, append(args, "--dry-run", "--json")...)
	wantCode(t, plan, 0)
	var counts struct {
		Groups []struct {
			Task, Method               string
			Items, Done, Failed, To_do int
		}
		Items, Done, Failed int
	}
	must(t, json.Unmarshal([]byte(plan.stdout), &counts))
	if len(counts.Groups) != 13 || counts.Items != 39 || counts.Done != 3 || counts.Failed != 0 {
		t.Errorf("the plan is %+v", counts)
	}
	for _, g := range counts.Groups {
		if done := map[string]int{"hdr": 3}[g.Task]; g.Method != "ddiff" || g.Items != 3 || g.Done != done || g.To_do != 3-done {
			t.Errorf("the plan has %+v", g)
		}
	}
}

// A single file is restored as --images would, whatever its name.
func TestRunOnOneImage(t *testing.T) {
	t.Parallel()
	image := filepath.Join(t.TempDir(), "a{b,c}.png")
	copyFile(t, photograph("coffee"), image)
	out := filepath.Join(t.TempDir(), "out")
	e := restore(t, image, "--task", "hdr", "--steps", "5", "-q", "-o", out)
	wantCode(t, e, 0)
	wantItems(t, out, 1)
	wantNames(t, out, "a{b,c}.hdr.png")
}

// A dry run reports rows that cannot be restored as a run does.
func TestDryRunFindsBadRows(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	write(t, filepath.Join(dir, "broken.png"), []byte("no picture"))
	e := restore(t, dir, "--task", "hdr", "--dry-run", "-o", filepath.Join(t.TempDir(), "out"))
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: broken (hdr): ")
	wantLine(t, e, "items=2 done=0 to_do=1 failed=1")
	e = restore(t, t.TempDir(), "--task", "hdr", "--dry-run")
	wantCode(t, e, 2)
	wantMessage(t, e, "no image in the directory")
}

// A dry run says how long a run will take once one was measured: three times as many pictures take three times as long.
func TestDryRunEstimate(t *testing.T) {
	t.Parallel()
	cache := t.TempDir() // of a new machine
	of := func(images ...string) (seconds float64, text ended) {
		t.Helper()
		run := func(more ...string) ended {
			cmd := command(t, small(append([]string{photographs(t, images...), "--task", "super_resolution", "--method", "dps", "--steps", "50", "--out", filepath.Join(t.TempDir(), "out")}, more...)...)...)
			cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache)
			e := end(t, cmd)
			wantCode(t, e, 0)
			return e
		}
		var plan struct {
			Seconds float64 `json:"estimated_seconds"`
		}
		must(t, json.Unmarshal([]byte(run("--dry-run", "--json").stdout), &plan))
		if text = run("--dry-run"); plan.Seconds == 0 {
			run("-q")
		}
		return plan.Seconds, text
	}
	before, text := of("coffee")
	if wantMessage(t, text, "no estimate of the time"); before != 0 {
		t.Errorf("before the first run: %g s", before)
	}
	one, _ := of("coffee")
	three, text := of("coffee", "chelsea", "rocket")
	if wantMessage(t, text, "on this device, at the pace of its last run"); one <= 0 || math.Abs(three-3*one) > 2 {
		t.Errorf("%g s for one picture, %g s for three", one, three)
	}
}

// Parameters of operator and solver reach the items, over those of a campaign file.
func TestRunParameters(t *testing.T) {
	t.Parallel()
	campaign := filepath.Join(t.TempDir(), "campaign.yml")
	photo, err := filepath.Abs(photograph("coffee"))
	must(t, err)
	write(t, campaign, []byte("dataset: {path: "+photo+", size: 64}\n"+
		"tasks: [{name: hdr, params: {scale: 3}, solver: {noise_std: 0.1}}, super_resolution]\nsteps: 5\nruns: 2\n"))
	out := filepath.Join(t.TempDir(), "out")
	e := restore(t, campaign, "--param", "scale=4", "--param", "super_resolution.factor=2", "--solver", "noise_std=0.7",
		"--select", "min_misfit", "-q", "--out", out)
	wantCode(t, e, 0)
	for _, r := range wantItems(t, out, 4) {
		want := map[string]float64{"scale": 4}
		if r.Item.Task != "hdr" {
			want = map[string]float64{"factor": 2}
		}
		for name, value := range want {
			if r.Item.Params[name] != value {
				t.Errorf("%s has the parameters %v, want %v", r.Item.Task, r.Item.Params, want)
			}
		}
		if !strings.Contains(string(r.Item.Solver), `"noise_std": 0.7`) {
			t.Errorf("%s has the solver %s", r.Item.Task, r.Item.Solver)
		}
	}
	wantNames(t, out, "coffee.hdr.run0.png", "coffee.hdr.run1.png", "coffee.super_resolution.run0.png", "coffee.super_resolution.run1.png")
}

// Names follow the last report: they are kept, replaced and removed with it, and foreign files stay.
func TestNamesFollowTheReport(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	run := func(args ...string) {
		t.Helper()
		wantCode(t, restore(t, append([]string{photograph("coffee"), "--size", "32", "--steps", "2", "-q", "-o", out}, args...)...), 0)
	}
	run("--task", "hdr")
	wantNames(t, out, "coffee.hdr.png")
	link := filepath.Join(out, "restored", "coffee.hdr.png")
	first, err := os.Lstat(link)
	must(t, err)
	run("--task", "hdr")
	if again, err := os.Lstat(link); err != nil || !again.ModTime().Equal(first.ModTime()) {
		t.Errorf("a second run writes the link again (%v)", err)
	}

	before, err := os.Readlink(link)
	must(t, err)
	run("--task", "hdr", "--seed", "2")
	after, err := os.Readlink(link)
	must(t, err)
	if before == after {
		t.Error("the name leads to the item of the earlier seed")
	}
	run("--task", "hdr", "--method", "ddiff,ddiff_hqs")
	wantNames(t, out, "coffee.hdr.ddiff.png", "coffee.hdr.ddiff_hqs.png")

	foreign := filepath.Join(out, "restored", "coffee.super_resolution.png")
	write(t, foreign, []byte("a file of the user"))
	run("--task", "super_resolution")
	if string(read(t, foreign)) != "a file of the user" {
		t.Error("the run replaced a file of the user")
	}
	must(t, os.Remove(foreign))
	run("--task", "super_resolution")
	wantNames(t, out, "coffee.super_resolution.png")

	e := ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "checked=4 ok=4 wrong=0")
	e = ddiff(t, "verify", foreign)
	wantCode(t, e, 0)
	if strings.Contains(e.stdout, "note") {
		t.Errorf("a readable name is verified by its passport alone\n%v", e)
	}
}
