package main_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestPlacement runs one campaign with settings that must not change results.
func TestPlacement(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "chelsea", "coffee", "rocket")
	const tasks, others = "super_resolution,inpaint_random,motion_deblur,phase_retrieval", "phase_retrieval,motion_deblur,inpaint_random,super_resolution"
	args := func(images, tasks, out string, more ...string) []string {
		return append([]string{"--images", images, "--task", tasks, "--steps", "20", "--seed", "5", "--out", out}, more...)
	}
	reference := filepath.Join(t.TempDir(), "reference")
	e := restore(t, args(dir, tasks, reference, "--batch", "1")...)
	wantCode(t, e, 0)
	wantCounts(t, e, 12, 0, 0, reference)

	for _, c := range []struct {
		name   string
		images string
		tasks  string
		n      int
		flags  []string
	}{
		{"batches of four", dir, tasks, 12, []string{"--batch", "4"}},
		{"streams", dir, tasks, 12, []string{"--batch", "4", "--threads", "4", "--streams", "3"}},
		{"other order of tasks", dir, others, 12, []string{"--batch", "3"}},
		{"the first image", dir, tasks, 4, []string{"--limit", "1"}},
		{"the last image alone, as a copy", photographs(t, "rocket"), tasks, 4, nil},
		{"other threads", filepath.Join(dir, "coffee.png"), tasks, 4, []string{"--threads", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			e := restore(t, args(c.images, c.tasks, out, c.flags...)...)
			wantCode(t, e, 0)
			wantCounts(t, e, c.n, 0, 0, out)
			wantItems(t, out, c.n)
			wantSame(t, out, reference)
		})
	}
	t.Run("in pieces", func(t *testing.T) {
		t.Parallel()
		out := filepath.Join(t.TempDir(), "out")
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			p := begin(t, args(dir, tasks, out)...)
			p.wait(t, &p.stdout, steps, 3)
			p.signal(t, s)
			p.end()
		}
		e := restore(t, args(dir, tasks, out)...)
		wantCode(t, e, 0)
		wantCounts(t, e, 12, 0, 0, out)
		wantItems(t, out, 12)
		wantSame(t, out, reference)
	})
}

// TestSeed checks that the seed changes results.
func TestSeed(t *testing.T) {
	t.Parallel()
	var noise [2][]byte
	for i, seed := range []string{"1", "2"} {
		out := filepath.Join(t.TempDir(), "out")
		wantCode(t, restore(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "10", "--seed", seed, "--out", out), 0)
		for id := range wantItems(t, out, 1) {
			noise[i] = read(t, file(out, id, "measurement.npy"))
		}
	}
	if string(noise[0]) == string(noise[1]) {
		t.Error("two seeds give the same measurement")
	}
}
