package haar_test

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// bundledPixels returns the bytes of the bundled prior.
func bundledPixels(t *testing.T) []byte {
	t.Helper()
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	return data
}

// evaluate runs a graph from x and the time to the outputs of build.
func evaluate(t *testing.T, p *prior.Prior, dims []int, x []float32, time int, build func(g *onnx.Graph, x, t onnx.Value) []onnx.Value) [][]float32 {
	t.Helper()
	g := onnx.NewGraph(p.Opset())
	in := g.Input("x", onnx.Float, dims...)
	return onnxtest.Compute(t, g, []onnx.Value{in}, build(g, in, g.Ints(time)), x)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T) func(v onnx.Value, err error) onnx.Value {
	return func(v onnx.Value, err error) onnx.Value {
		t.Helper()
		must(t, err)
		return v
	}
}

// distance is the largest difference.
func distance(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}

// TestExact: encoder and decoder are inverse and preserve lengths, and the network predicts on latents what the pixel
// prior predicts on the image.
func TestExact(t *testing.T) {
	t.Parallel()
	pixels := bundledPixels(t)
	plain, err := prior.Load("pixels", pixels)
	must(t, err)
	for levels := 1; levels <= 3; levels++ {
		dir := filepath.Join(t.TempDir(), "latent")
		must(t, haar.Write(dir, pixels, haar.Config{Levels: levels}))
		p, err := prior.Open(dir)
		must(t, err)
		s, dims := p.Space(), []int{2, 3, 32, 16}
		x := make([]float32, 2*3*32*16)
		noise.Normal(x, noise.NewKey([32]byte{1}), noise.Step, 0, 1)
		f := 1 << levels
		if got := s.Dims(dims); got[1] != 3*f*f || got[2] != 32/f || got[3] != 16/f {
			t.Errorf("%d levels: latents of %v", levels, got)
		}
		out := evaluate(t, p, dims, x, 300, func(g *onnx.Graph, x, at onnx.Value) []onnx.Value {
			z := one(t)(s.Encode(g, x))
			there := one(t)(s.Decode(g, z))
			predicted := one(t)(s.Decode(g, one(t)(p.Predict(g, z, at))))
			return []onnx.Value{z, there, predicted, one(t)(plain.Predict(g, x, at))}
		})
		if d := distance(out[1], x); !(d <= 1e-5) {
			t.Errorf("%d levels: decoding the encoded image changes it by %g", levels, d)
		}
		if a, b := norm(out[0]), norm(x); !(math.Abs(a/b-1) <= 1e-5) {
			t.Errorf("%d levels: the latents have the norm %g, the image %g", levels, a, b)
		}
		if d := distance(out[2], out[3]); !(d <= 1e-4) {
			t.Errorf("%d levels: the prediction on latents differs by %g", levels, d)
		}
	}
}

func norm(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// TestQuantiser: decoded images have latents that are multiples of the step, and the gradient passes the quantiser unchanged:
// that of a sum of decoded pixels is the decoder's alone.
func TestQuantiser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, haar.Write(dir, bundledPixels(t), haar.Config{Levels: 1, Step: 0.25}))
	p, err := prior.Open(dir)
	must(t, err)
	if p.Card.Latent.FirstStage != prior.VQ {
		t.Errorf("first stage %q", p.Card.Latent.FirstStage)
	}
	dims := []int{1, 12, 8, 8}
	z := make([]float32, 12*64)
	noise.Normal(z, noise.NewKey([32]byte{2}), noise.Step, 0, 1)
	out := evaluate(t, p, dims, z, 0, func(g *onnx.Graph, z, _ onnx.Value) []onnx.Value {
		x := one(t)(p.Space().Decode(g, z))
		q := one(t)(p.Space().Encode(g, x))
		gradient := one(t)(g.Gradient(x, z, x)) // Dᵀ·D·q = q
		return []onnx.Value{q, gradient}
	})
	for i, v := range out[0] {
		want := math.RoundToEven(float64(z[i])/0.25) * 0.25
		if !(math.Abs(float64(v)-want) <= 1e-5) {
			t.Fatalf("latent %d: %g decodes and encodes to %g, want %g", i, z[i], v, want)
		}
	}
	if d := distance(out[1], out[0]); !(d <= 1e-5) {
		t.Errorf("the gradient differs by %g from that of the decoder", d)
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	pixels := bundledPixels(t)
	for _, c := range []haar.Config{{Levels: 4}, {Levels: -1}, {Step: -1}, {Step: 2}, {Step: math.NaN()}} {
		if err := haar.Write(t.TempDir(), pixels, c); !errors.Is(err, haar.ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	dir := t.TempDir()
	must(t, haar.Write(dir, pixels, haar.Config{}))
	archive, err := prior.Read(dir)
	must(t, err)
	if err := haar.Write(t.TempDir(), archive, haar.Config{}); !errors.Is(err, haar.ErrConfig) {
		t.Errorf("a latent prior instead of a pixel prior: %v", err)
	}
}
