package restore_test

import (
	"testing"

	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestMemory: the estimate is linear in pixels and batch, quadratic in the sides with constant matrices, and bounds the
// measured peaks of "ddiff run --fit pad --threads 1" (3 steps, minus the 174 MiB of 64×64) without exceeding three times
// their value.
func TestMemory(t *testing.T) {
	rt := onnxtest.Runtime(t)
	e := newEngine(t, rt.Threaded(1), restore.Config{Operators: operator.Builtin()})
	need := func(task string, w, h, n int) int64 {
		return e.Memory(restore.Plan{Task: task, Image: rgb(h, w)}, n) >> 20
	}
	for _, c := range []struct{ w, h, mib int64 }{{512, 512, 427}, {1024, 512, 883}, {1024, 1024, 1776}, {4096, 64, 428}} {
		if got := need("hdr", int(c.w), int(c.h), 1); got < c.mib || got > 3*c.mib {
			t.Errorf("%d×%d: %d MiB, measured %d", c.w, c.h, got, c.mib)
		}
	}
	if one, eight := need("hdr", 512, 512, 1), need("hdr", 512, 512, 8); eight < 8*one || eight > 8*one+8 {
		t.Errorf("a batch of 8: %d MiB, one: %d MiB", eight, one)
	}
	parts := newEngine(t, rt.Threaded(4), restore.Config{Operators: operator.Builtin()})
	plan := restore.Plan{Task: "hdr", Image: rgb(64, 64)}
	if more := parts.Memory(plan, 3) - e.Memory(plan, 3); more != 2*2*4*int64(e.Prior().Parameters()) {
		t.Errorf("three streams: %d bytes above one, want two copies of the weights in two streams", more)
	}
	if more := parts.Memory(plan, 1) - e.Memory(plan, 1); more != 0 {
		t.Errorf("one image: %d bytes above one stream", more)
	}
	// 11.3 GiB were measured for matrices of 16384² elements, some copies of which stay in caches. Phase retrieval has half as many again.
	if got := need("phase_retrieval", 16384, 8, 1); got < 16_950 {
		t.Errorf("phase_retrieval at 16384×8: %d MiB", got)
	}
	if got := need("phase_retrieval", 100_000, 8, 1); got < 100_000 {
		t.Errorf("phase_retrieval at 100000×8: %d MiB", got)
	}
	if blur, clip := need("gaussian_deblur", 16384, 8, 1), need("hdr", 16384, 8, 1); blur != clip {
		t.Errorf("gaussian_deblur at 16384×8: %d MiB, without matrices %d", blur, clip)
	}
}

// TestLatentMemory: the estimate for a latent prior bounds the measured peaks of "ddiff run --threads 1" (3 steps, minus the
// 223 MiB of 64×64), in both modes, without exceeding three times their value.
func TestLatentMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	must(t, haar.Write(dir, data, haar.Config{}))
	p, err := prior.Open(dir)
	must(t, err)
	e := restore.NewEngine(onnxtest.Runtime(t), p, restore.Config{})
	defer e.Close() //nolint:errcheck // nothing is compiled
	for side, mib := range map[int]int64{256: 67, 512: 439} {
		plan := restore.Plan{Task: "hdr", Image: rgb(side, side)}
		if got := e.Memory(plan, 1) >> 20; got < mib || got > 3*mib {
			t.Errorf("%d×%d: %d MiB, measured %d", side, side, got, mib)
		}
	}
}

// TestGradientMemory: the estimate for a gradient through the network bounds the measured peaks of "ddiff run --steps 2" (minus the 176
// MiB of ddiff at 64×64) without exceeding 1.5 times their value. dmplug differentiates as many evaluations as its parameter ddim_steps.
func TestGradientMemory(t *testing.T) {
	t.Parallel()
	e := newEngine(t, onnxtest.Runtime(t), restore.Config{Operators: operator.Builtin(), Methods: method.Builtin()})
	need := func(name string, side int) int64 {
		settings := resolve(t, method.Request{Method: name, Preset: "natural", Task: operator.InpaintBox})
		return e.Memory(restore.Plan{Task: operator.InpaintBox, Image: rgb(side, side), Solver: settings}, 1) >> 20
	}
	for _, c := range []struct {
		method string
		side   int
		mib    int64
	}{{"dps", 256, 748}, {"dps", 512, 2942}, {"dmplug", 256, 1660}, {"dmplug", 512, 6332}} {
		if got := need(c.method, c.side); got < c.mib || 2*got > 3*c.mib {
			t.Errorf("%s, %d×%d: %d MiB, measured %d", c.method, c.side, c.side, got, c.mib)
		}
	}
	for _, name := range []string{"diffpir", "dcdp"} {
		if got, want := need(name, 256), need("ddiff", 256); got != want {
			t.Errorf("%s: %d MiB, ddiff %d, without a gradient through the network", name, got, want)
		}
	}
}

// convolutions is an operator file of 3×3 convolutions of 64 channels with tanh between them.
func convolutions(t *testing.T, layers, side int) *operator.File {
	t.Helper()
	g := onnx.NewGraph(17)
	v := g.Input("x", onnx.Float, -1, 3, side, side)
	for i, in := 0, 3; i < layers; i++ {
		out := 64
		if i == layers-1 {
			out = 3
		}
		kernel := g.Const(make([]float32, out*in*9), out, in, 3, 3)
		v = g.Apply("Conv", onnx.Float, []int{-1, out, side, side}, map[string]any{"pads": []int{1, 1, 1, 1}}, v, kernel)
		if i < layers-1 {
			v = g.Apply("Tanh", onnx.Float, v.Dims, nil, v)
		}
		in = out
	}
	g.Output("y", v)
	data, err := g.Marshal("own")
	must(t, err)
	f, err := operator.Load("own.onnx", data)
	must(t, err)
	return f
}

// TestOperatorMemory: the estimate for an operator file bounds the measured peaks of "ddiff run --threads 1 --steps 3", minus
// those of a file with one convolution of three channels, without exceeding twice their value.
func TestOperatorMemory(t *testing.T) {
	t.Parallel()
	e := newEngine(t, onnxtest.Runtime(t).Threaded(1), restore.Config{})
	for _, c := range []struct {
		layers, side int
		mib          int64
	}{{4, 256, 170}, {10, 256, 377}, {4, 512, 649}} {
		own := convolutions(t, c.layers, c.side)
		plan := restore.Plan{Task: "own", Image: rgb(c.side, c.side)}
		beside := e.Memory(plan, 1)
		plan.Own = own
		if got := (e.Memory(plan, 1) - beside) >> 20; got < c.mib || got > 2*c.mib {
			t.Errorf("%d layers at %d×%d: %d MiB, measured %d", c.layers, c.side, c.side, got, c.mib)
		}
		if one, four := e.Memory(plan, 1), e.Memory(plan, 4); four < 4*one-8 || four > 4*one+8 {
			t.Errorf("a batch of 4: %d bytes, one: %d bytes", four, one)
		}
		plan.Own = own.Outline()
		if got := newEngine(t, onnxtest.Runtime(t).Threaded(1), restore.Config{}).Memory(plan, 1); got != beside {
			t.Errorf("an outline: %d bytes, want %d", got, beside)
		}
	}
}

// TestTiledMemory: the estimate for images in tiles bounds the measured peaks of "ddiff run --fit pad --tile auto --steps 2", minus the 174 MiB
// of 64×64, without exceeding twice their value.
func TestTiledMemory(t *testing.T) {
	t.Parallel()
	e := engine(t)
	need := func(task string, w, h int, tiling prior.Tiling) int64 {
		return e.Memory(restore.Plan{
			Task: task, Image: rgb(h, w), Solver: method.Settings{Method: "ddiff"}, Tiles: tiling,
		}, 1) >> 20
	}
	auto := prior.Tiling{Side: 256, Overlap: 64}
	for _, c := range []struct {
		task string
		w, h int
		mib  int64
	}{{"hdr", 2000, 1504, 1224}, {"gaussian_deblur", 2000, 1504, 1307}, {"gaussian_deblur", 4000, 3000, 4897}, {"motion_deblur", 2000, 1504, 2627},
		{"hdr", 1504, 1040, 715}, {"denoise", 1504, 1040, 605}, {"demosaic", 1504, 1040, 730}, {"jpeg", 1504, 1040, 1104},
	} {
		if got := need(c.task, c.w, c.h, auto); got < c.mib || got > 2*c.mib {
			t.Errorf("%s, %d×%d: %d MiB, measured %d", c.task, c.w, c.h, got, c.mib)
		}
	}
	averaging := method.Settings{Method: "ddiff"}.With("mirror", parameter.Word("average"))
	if got := e.Memory(restore.Plan{Task: "denoise", Image: rgb(1024, 1024), Solver: averaging, Tiles: auto}, 1) >> 20; got < 753 || got > 2*753 {
		t.Errorf("four evaluations in a step, 1024×1024: %d MiB, measured 753", got)
	}
	if whole, tiles := need("hdr", 2000, 1504, prior.Tiling{}), need("hdr", 2000, 1504, auto); whole < 4*tiles {
		t.Errorf("2000×1504: %d MiB without tiles, %d MiB with tiles", whole, tiles)
	}
	if one, none := need("hdr", 256, 256, auto), need("hdr", 256, 256, prior.Tiling{}); one != none {
		t.Errorf("one tile: %d MiB, without tiles %d", one, none)
	}
}
