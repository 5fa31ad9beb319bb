package main_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterrupt interrupts runs by signals; the same command resumes them.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup, which ignores the signal, the program would inherit that
	dir := photographs(t, "chelsea", "coffee")
	args := func(out string, more ...string) []string {
		return append([]string{"--images", dir, "--task", "motion_deblur", "--steps", "50", "--out", out}, more...)
	}
	reference := filepath.Join(t.TempDir(), "reference")
	wantCode(t, restore(t, args(reference, "--batch", "2")...), 0)
	wantItems(t, reference, 2)

	for _, c := range []struct {
		name   string
		signal syscall.Signal
		batch  string
		kept   int                                // half-solved items at the least
		damage func(t *testing.T, paths []string) // what happens to their checkpoints
	}{
		{"one by one", syscall.SIGINT, "1", 1, nil},
		{"in a batch", syscall.SIGTERM, "2", 2, nil},
		{"by a closed terminal, with damaged checkpoints", syscall.SIGHUP, "2", 2, damageAll},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			p := begin(t, args(out, "--batch", c.batch)...)
			p.wait(t, &p.stdout, steps, 2)
			p.signal(t, c.signal)
			e := p.end()
			wantCode(t, e, 130)
			wantMessage(t, e, "ddiff: interrupted; rerun the same command to resume")
			wantMessage(t, e, "stored a checkpoint", "step=")
			if !strings.Contains(e.stdout, "done=0 failed=0 dead=0 pending=2 out="+out) {
				t.Errorf("the counts are missing\n%v", e)
			}
			if summary, err := os.ReadFile(filepath.Join(out, "summary.json")); err != nil || !bytes.Contains(summary, []byte(`"planned": 2,`)) {
				t.Errorf("the report does not say how many items were planned: %v\n%s", err, summary)
			}
			kept := checkpoints(t, out)
			if len(kept) < c.kept {
				t.Fatalf("%d checkpoints, want %d\n%v", len(kept), c.kept, e)
			}
			reached := checkpointSteps(t, e.stderr)
			if c.damage != nil {
				c.damage(t, kept)
				reached = []int{0}
			}

			spans := filepath.Join(t.TempDir(), "spans.jsonl")
			e = restore(t, args(out, "--batch", c.batch, "--trace-file", spans, "--log-level", "info")...)
			wantCode(t, e, 0)
			wantCounts(t, e, 2, 0, 0, out)
			if c.damage != nil {
				wantMessage(t, e, "ignored a checkpoint that is damaged or does not fit", "wrong checksum")
			}
			made := firstSteps(t, spans)
			for _, n := range reached {
				if !slices.Contains(made, n+1) {
					t.Errorf("no span resumes after step %d; the spans begin with %v", n, made)
				}
			}
			// An item that had no checkpoint begins with the first step.
			if len(reached) == len(kept) && len(kept) == 2 && slices.Contains(made, 1) {
				t.Errorf("the first step is made again, the spans begin with %v", made)
			}
			wantItems(t, out, 2)
			wantSame(t, out, reference)
			if left := checkpoints(t, out); len(left) > 0 {
				t.Errorf("checkpoints are left: %v", left)
			}
		})
	}
}

func checkpoints(t *testing.T, out string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(out, "checkpoints"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(out, "checkpoints", e.Name()))
	}
	return paths
}

// damageAll flips one bit of the first file and truncates the others.
func damageAll(t *testing.T, paths []string) {
	t.Helper()
	for i, path := range paths {
		data := read(t, path)
		if i == 0 {
			data[len(data)/2] ^= 1
		} else {
			data = data[:len(data)/2]
		}
		write(t, path, data)
	}
}

// checkpointSteps returns the steps of the checkpoints in the log.
func checkpointSteps(t *testing.T, log string) []int {
	t.Helper()
	var found []int
	for line := range strings.Lines(log) {
		if _, after, ok := strings.Cut(line, "stored a checkpoint"); ok {
			_, after, _ = strings.Cut(after, "step=")
			n, err := strconv.Atoi(strings.TrimSpace(after))
			must(t, err)
			found = append(found, n)
		}
	}
	return found
}

// firstSteps returns the first step of each span in a trace file.
func firstSteps(t *testing.T, path string) []int {
	t.Helper()
	var found []int
	for _, s := range readSpans[span](t, path) {
		if s.Name == "steps" {
			found = append(found, s.number(t, "ddiff.step.first"))
		}
	}
	return found
}

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
			if filepath.Base(name) == "lock" { // with other text it is no lock of ddiff
				continue
			}
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
	maps.DeleteFunc(before, func(path string, _ stamp) bool { // a file that waits for its place takes it
		res := found[filepath.Base(filepath.Dir(path))]
		return res.Item.ID == "" || slices.Contains(res.Replaces, filepath.Base(path))
	})
	for path, s := range before {
		if after[path] != s {
			t.Errorf("the last run has changed %s", path)
		}
	}
	reference := filepath.Join(t.TempDir(), "reference")
	wantCode(t, restore(t, args(reference)...), 0)
	wantSame(t, out, reference)
	left := slices.DeleteFunc(files(t, own), func(name string) bool { return strings.HasPrefix(name, "ddiff/pace/") }) // a cache
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
