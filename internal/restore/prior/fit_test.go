package prior_test

import (
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// TestWrongCardIsDoubted: the check before the first item names the schedule and the prediction of the network behind a wrong card, and doubts no
// right one. The bundled prior predicts the clean image on the linear schedule.
func TestWrongCardIsDoubted(t *testing.T) {
	t.Parallel()
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	const right = "prediction=sample and schedule=linear:"
	for _, c := range []struct{ key, value, want string }{
		{"name", "another", ""},
		{"schedule", "cosine:1000", right},
		{"schedule", "scaled_linear:0.00085:0.012:1000", right},
		{"schedule", "zero_snr:linear:1e-4:0.02:1000", ""}, // nearly the same levels
		{"prediction", "epsilon", right},
	} {
		p, err := prior.Load("p.onnx", onnxtest.WithMetadata(t, data, map[string]string{"ddiff." + c.key: c.value}))
		must(t, err)
		v, err := p.Verify(t.Context(), onnxtest.Runtime(t))
		must(t, err)
		if (v.Doubt == "") != (c.want == "") || !strings.Contains(v.Doubt, c.want) {
			t.Errorf("%s %s: doubt %q, want %q", c.key, c.value, v.Doubt, c.want)
		}
	}
}

// sized returns a network that declares images of 8×8; its operations take others too unless they are fixed.
func sized(t *testing.T, fixed bool) *prior.Prior {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1, 3, 8, 8)
	g.Input("t", onnx.Int64, 1)
	if fixed {
		x = g.Reshape(g.Reshape(x, 1, 3, 64), 1, 3, 8, 8)
	}
	g.Output("eps", g.Mul(x, g.Scalar(0.5)))
	data, err := g.Marshal("sized")
	must(t, err)
	all := map[string]string{}
	for k, v := range card {
		all[k] = v
	}
	p, err := prior.Load("my.onnx", onnxtest.WithMetadata(t, data, all))
	must(t, err)
	return p
}

// TestImagesOfOneSize: a file that takes one size says so before it is compiled, and one that only declares a size takes all.
func TestImagesOfOneSize(t *testing.T) {
	t.Parallel()
	must(t, sized(t, false).Takes(16, 24, 0))
	p := sized(t, true)
	if p.Card.Fixed != [2]int{8, 8} || p.Card.TileSide() != 8 {
		t.Errorf("card %+v, tiles of %d", p.Card, p.Card.TileSide())
	}
	for _, c := range []struct {
		height, width, tile int
		want                string
	}{
		{8, 8, 0, ""}, {8, 8, 8, ""}, {24, 16, 8, ""},
		{16, 8, 0, "prior my.onnx: size of images: it takes images of 8×8 only, not of 8×16; use --tile 8, or size 8 of a campaign"},
		{16, 16, 16, "not of 16×16; use --tile 8, or size 8 of a campaign"},
		{16, 4, 8, "and no smaller images"},
	} {
		err := p.Takes(c.height, c.width, c.tile)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	free, err := prior.Open(prior.Bundled)
	must(t, err)
	must(t, free.Takes(8, 1024, 0))
}
