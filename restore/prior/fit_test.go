package prior_test

import (
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/prior"
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

// TestImagesOfOneSize: a file that takes one size says so before it is compiled.
func TestImagesOfOneSize(t *testing.T) {
	t.Parallel()
	p, err := prior.Load("my.onnx", model(t, 3, 3, onnx.Int64, nil)) // of 8×8
	must(t, err)
	if p.Card.Fixed != [2]int{8, 8} || p.Card.TileSide() != 8 {
		t.Errorf("card %+v, tiles of %d", p.Card, p.Card.TileSide())
	}
	for _, c := range []struct {
		height, width, tile int
		want                string
	}{
		{8, 8, 0, ""}, {8, 8, 8, ""}, {24, 16, 8, ""},
		{16, 8, 0, "prior my.onnx: size of images: it takes images of 8×8 only, not of 8×16; use --size 8 or --tile 8"},
		{16, 16, 16, "not of 16×16; use --size 8 or --tile 8"},
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
