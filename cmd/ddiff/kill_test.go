package main_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKill kills runs of one campaign at four points; the same command finishes it.
func TestKill(t *testing.T) {
	t.Parallel()
	dir, out, own := photographs(t, "chelsea", "coffee", "rocket"), filepath.Join(t.TempDir(), "out"), t.TempDir()
	args := func(out string) []string {
		return []string{"--images", dir, "--task", "super_resolution", "--steps", "60", "--batch", "1", "--out", out}
	}
	kill := func(when func(p *process)) {
		t.Helper()
		p := beginWith(t, []string{"XDG_CACHE_HOME=" + own}, args(out)...)
		when(p)
		p.signal(t, syscall.SIGKILL)
		if e := p.end(); e.code != -1 {
			t.Fatalf("it ended before it was killed\n%v", e)
		}
		items(t, out) // every written item is complete
		// A damaged queue costs time only.
		for _, name := range files(t, own) {
			write(t, filepath.Join(own, name), []byte("damaged"))
		}
	}
	kill(func(p *process) { p.wait(t, &p.stderr, "opened ONNX Runtime", 1) })
	kill(func(p *process) { p.wait(t, &p.stdout, steps, 1) })
	kill(func(p *process) { waitFor(t, p, filepath.Join(out, "items", "*", "*")) })
	kill(func(p *process) { waitFor(t, p, filepath.Join(out, "items", "*", "result.json")) })

	before := stamps(t, out)
	found := items(t, out)
	if len(found) == 0 || len(found) == 3 {
		t.Fatalf("%d of 3 items are finished before the last run", len(found))
	}
	last := command(t, small(args(out)...)...)
	last.Env = append(last.Env, "XDG_CACHE_HOME="+own)
	e := end(t, last)
	wantCode(t, e, 0)
	wantCounts(t, e, 3, 0, 0, out)
	wantItems(t, out, 3)
	after := stamps(t, out)
	maps.DeleteFunc(before, func(path string, _ stamp) bool { return found[filepath.Base(filepath.Dir(path))].Item.ID == "" })
	for path, s := range before {
		if after[path] != s {
			t.Errorf("the last run has changed %s", path)
		}
	}
	reference := filepath.Join(t.TempDir(), "reference")
	wantCode(t, restore(t, args(reference)...), 0)
	wantSame(t, out, reference)
	left := slices.DeleteFunc(files(t, own), func(name string) bool { return name == filepath.Join("ddiff", "batch.json") })
	if len(left) > 0 {
		t.Errorf("files are left in the user's cache: %v", left)
	}
	for _, name := range files(t, out) {
		if strings.HasPrefix(name, "items") && strings.Contains(name, ".tmp") {
			t.Errorf("a temporary file is left among the items: %s", name)
		}
	}
}

// waitFor waits until a file matches the pattern.
func waitFor(t *testing.T, p *process, pattern string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		found, err := filepath.Glob(pattern)
		must(t, err)
		if len(found) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-p.done:
			t.Fatalf("it ended before there was %s\n%v", pattern, p.end())
		}
	}
}
