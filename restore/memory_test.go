package restore_test

import (
	"testing"

	"ddiff/restore"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/prior/haar"
)

// TestMemory: the estimate is linear in pixels and batch, quadratic in the sides with constant matrices, and bounds the
// measured peaks of "ddiff run --fit pad --threads 1" (3 steps, minus the 174 MiB of 64×64) without exceeding three times
// their value.
func TestMemory(t *testing.T) {
	rt := onnxtest.Runtime(t)
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	e := restore.NewEngine(rt, p, restore.Config{Operators: operator.Builtin()})
	defer e.Close() //nolint:errcheck // nothing is compiled
	need := func(task string, w, h, n int) int64 {
		return e.Memory(restore.Plan{Task: task, Image: operator.Shape{Channels: 3, Height: h, Width: w}}, n) >> 20
	}
	for _, c := range []struct{ w, h, mib int64 }{{512, 512, 427}, {1024, 512, 883}, {1024, 1024, 1776}, {4096, 64, 428}} {
		if got := need("hdr", int(c.w), int(c.h), 1); got < c.mib || got > 3*c.mib {
			t.Errorf("%d×%d: %d MiB, measured %d", c.w, c.h, got, c.mib)
		}
	}
	if one, eight := need("hdr", 512, 512, 1), need("hdr", 512, 512, 8); eight < 8*one || eight > 8*one+8 {
		t.Errorf("a batch of 8: %d MiB, one: %d MiB", eight, one)
	}
	// 11.3 GiB were measured for Gaussian matrices of 16384 rows, some copies of which stay in caches.
	if got := need("gaussian_deblur", 16384, 8, 1); got < 11_300 {
		t.Errorf("gaussian_deblur at 16384×8: %d MiB", got)
	}
	if got := need("gaussian_deblur", 100_000, 8, 1); got < 100_000 {
		t.Errorf("gaussian_deblur at 100000×8: %d MiB", got)
	}
}

// TestLatentMemory: the estimate for a latent prior bounds the measured peaks of "ddiff run --threads 1" (3 steps, minus the
// 223 MiB of 64×64), in both modes, without exceeding three times their value.
func TestLatentMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, err := prior.Read(prior.Bundled)
	if err != nil {
		t.Fatal(err)
	}
	if err := haar.Write(dir, data, haar.Config{}); err != nil {
		t.Fatal(err)
	}
	p, err := prior.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := restore.NewEngine(onnxtest.Runtime(t), p, restore.Config{})
	defer e.Close() //nolint:errcheck // nothing is compiled
	for side, mib := range map[int]int64{256: 67, 512: 439} {
		plan := restore.Plan{Task: "hdr", Image: operator.Shape{Channels: 3, Height: side, Width: side}}
		if got := e.Memory(plan, 1) >> 20; got < mib || got > 3*mib {
			t.Errorf("%d×%d: %d MiB, measured %d", side, side, got, mib)
		}
	}
}
