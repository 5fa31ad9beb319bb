package prior_test

import (
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// The parts have all images and all threads, and no stream lacks either.
func TestStreams(t *testing.T) {
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	rt := onnxtest.Runtime(t)
	for _, c := range []struct {
		threads, images, most int
		want                  []prior.Stream
	}{
		{2, 1, 2, []prior.Stream{{1, 2}}},
		{2, 2, 2, []prior.Stream{{1, 1}, {1, 1}}},
		{2, 5, 2, []prior.Stream{{3, 1}, {2, 1}}},
		{2, 4, 1, []prior.Stream{{4, 2}}},
		{2, 4, 0, []prior.Stream{{4, 2}}},
		{4, 3, 4, []prior.Stream{{1, 2}, {1, 1}, {1, 1}}},
		{4, 8, 64, []prior.Stream{{2, 1}, {2, 1}, {2, 1}, {2, 1}}},
		{1, 8, 8, []prior.Stream{{8, 1}}},
	} {
		if got := p.Streams(rt.Threaded(c.threads), c.images, c.most, 16, 16); !slices.Equal(got, c.want) {
			t.Errorf("%d threads, %d images, at most %d: %v, want %v", c.threads, c.images, c.most, got, c.want)
		}
	}
	// The copies of the weights stay below 256 MiB: 15 of 4.2 million float32 values.
	if got := len(p.Streams(rt.Threaded(64), 64, 64, 16, 16)); got < 14 || got > 16 || got*p.Parameters()*4 > 256<<20 {
		t.Errorf("%d streams of %d weights", got, p.Parameters())
	}
}

// OpenVINO has streams of 8192 pixels and more.
func TestStreamsOfOpenVINO(t *testing.T) {
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	rt := onnxtest.OpenVINO(t).Threaded(2)
	for _, c := range []struct{ n, height, width, want int }{{2, 128, 128, 2}, {4, 64, 64, 2}, {2, 64, 64, 1}, {4, 64, 60, 1}, {1, 256, 256, 1}} {
		if got := len(p.Streams(rt, c.n, 2, c.height, c.width)); got != c.want {
			t.Errorf("%d of %d×%d: %d streams, want %d", c.n, c.height, c.width, got, c.want)
		}
	}
}

// A network whose file states the batch takes no parts of it.
func TestStreamsOfFixedBatch(t *testing.T) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 4, 3, 8, 8)
	g.Input("t", onnx.Int64, 4)
	g.Output("eps", g.Neg(x))
	data, err := g.Marshal("fixed")
	must(t, err)
	p, err := prior.Load("fixed.onnx", onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "fixed", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000", "ddiff.range": "-1..1",
		"ddiff.channels": "3", "ddiff.multiple_of": "2", "ddiff.learned_variance": "false", "ddiff.license": "Apache-2.0",
	}))
	must(t, err)
	if got := p.Streams(onnxtest.Runtime(t).Threaded(4), 4, 4, 8, 8); !slices.Equal(got, []prior.Stream{{4, 4}}) {
		t.Errorf("%v", got)
	}
}

// Streams compute what one session computes.
func TestCompileStreams(t *testing.T) {
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	rt := onnxtest.Runtime(t).Threaded(2)
	const side = 16
	whole, err := p.Compile(rt, 3, side, side, onnxruntime.FP32)
	must(t, err)
	defer whole.Close()
	parts, err := p.CompileStreams(rt, p.Streams(rt, 3, 2, side, side), side, side, onnxruntime.FP32)
	must(t, err)
	defer parts.Close()
	if len(parts) != 2 {
		t.Fatalf("%d networks, want 2", len(parts))
	}
	for i := range whole.X.F32 {
		whole.X.F32[i] = float32(math.Sin(float64(i * i)))
	}
	whole.T.I64[0] = 400
	at := 0
	for _, n := range parts {
		at += copy(n.X.F32, whole.X.F32[at:])
		n.T.I64[0] = 400
	}
	must(t, whole.Run(t.Context()))
	must(t, parts.Run(t.Context()))
	got := slices.Concat(parts[0].Y.F32, parts[1].Y.F32)
	for i, want := range whole.Y.F32 {
		if math.Abs(float64(got[i]-want)) > 1e-5 {
			t.Fatalf("value %d of the prediction: %v in streams, %v in one session", i, got[i], want)
		}
	}
}
