package prior_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

var card = map[string]string{
	"ddiff.card": "1", "ddiff.name": "test", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000",
	"ddiff.range": "-1..1", "ddiff.channels": "3", "ddiff.multiple_of": "8", "ddiff.learned_variance": "false",
	"ddiff.license": "Apache-2.0",
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// model returns a tiny network with the given numbers of channels, and with changes to the card.
func model(t testing.TB, in, out int, time onnx.DType, changes map[string]string) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("sample", onnx.Float, 1, in, 8, 8)
	step := g.Cast(g.Input("timestep", time, 1), onnx.Float)
	y := g.Mul(x, g.Reshape(step, 1, 1, 1, 1))
	for y.Dims[1] < out {
		y = g.Concat(1, y, y)
	}
	g.Output("noise", g.Slice(y, 1, 0, out))
	data, err := g.Marshal("tiny")
	must(t, err)
	all := map[string]string{}
	for k, v := range card {
		all[k] = v
	}
	for k, v := range changes {
		all["ddiff."+k] = v
	}
	return onnxtest.WithMetadata(t, data, all)
}

func TestBundled(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	if p.Card.Prediction != prior.Sample || p.Schedule.Steps() != 1000 || p.Card.Channels != 3 || p.Card.License == "" {
		t.Errorf("card %+v", p.Card)
	}
}

// TestBase: the larger prior is a network like the bundled one.
func TestBase(t *testing.T) {
	t.Parallel()
	p, err := prior.Open("../../../priors/base.onnx")
	must(t, err)
	v, err := p.Verify(t.Context(), onnxtest.Runtime(t))
	must(t, err)
	if v != (prior.Verification{}) || prior.Own()[p.SHA256] != prior.Base || p.Card.License != "CC-BY-4.0" {
		t.Errorf("%+v, card %+v", v, p.Card)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"plain":            model(t, 3, 3, onnx.Int64, nil),
		"float time":       model(t, 3, 3, onnx.Float, nil),
		"learned variance": model(t, 3, 6, onnx.Int64, map[string]string{"learned_variance": "true"}),
		"grey":             model(t, 1, 1, onnx.Int64, map[string]string{"channels": "1"}),
		"velocity":         model(t, 3, 3, onnx.Int64, map[string]string{"prediction": "velocity", "schedule": "cosine:500"}),
	} {
		p, err := prior.Load(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		g := onnx.NewGraph(p.Opset())
		y, err := p.Predict(g, g.Input("x", onnx.Float, 1, p.Card.Channels, 8, 8), g.Input("t", onnx.Int64, 1))
		if err != nil || y.Dims[1] != p.Card.Channels {
			t.Errorf("%s: prediction of shape %v, error %v", name, y.Dims, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		kind error
		want string
	}{
		"not a model":       {[]byte("GIF89a"), modelfile.ErrModel, "not an ONNX file"},
		"missing entries":   {model(t, 3, 3, onnx.Int64, map[string]string{"schedule": "", "license": ""}), prior.ErrCard, "lacks schedule, license; add it with: ddiff prior card my.onnx --set schedule=linear:1e-4:0.02:1000 --set license="},
		"prediction":        {model(t, 3, 3, onnx.Int64, map[string]string{"prediction": "score"}), prior.ErrCard, "must be epsilon, sample or velocity"},
		"schedule":          {model(t, 3, 3, onnx.Int64, map[string]string{"schedule": "linear:0.1"}), prior.ErrCard, "takes 3 numbers"},
		"range":             {model(t, 3, 3, onnx.Int64, map[string]string{"range": "0..1"}), prior.ErrCard, "only -1..1"},
		"input channels":    {model(t, 4, 4, onnx.Int64, nil), prior.ErrCard, "channels is 3"},
		"output channels":   {model(t, 3, 6, onnx.Int64, nil), prior.ErrCard, "3 output channels expected"},
		"variance promised": {model(t, 3, 3, onnx.Int64, map[string]string{"learned_variance": "true"}), prior.ErrCard, "6 output channels expected"},
		"edm of an index":   {model(t, 3, 3, onnx.Float, map[string]string{"prediction": "edm:0.5"}), prior.ErrCard, "must be epsilon, sample or velocity"},
		"no deviation":      {model(t, 3, 3, onnx.Float, map[string]string{"prediction": "edm:0", "schedule": "sigma:cosine:9"}), prior.ErrCard, "edm:STD"},
		"velocity of sigma": {model(t, 3, 3, onnx.Float, map[string]string{"prediction": "velocity", "schedule": "sigma:cosine:9"}), prior.ErrCard, "edm:STD"},
		"index of a flow":   {model(t, 3, 3, onnx.Int64, map[string]string{"schedule": "flow:cosine:9"}), prior.ErrCard, "timestep must be float"},
		"variance of a flow": {
			model(t, 3, 6, onnx.Float, map[string]string{"schedule": "flow:cosine:9", "learned_variance": "true"}), prior.ErrCard, "must be false for a schedule",
		},
		"table to 0": {
			model(t, 3, 3, onnx.Int64, map[string]string{"schedule": "table:0.9:0.5:0"}), prior.ErrCard, "must be sample or velocity",
		},
		"no image in epsilon": {
			model(t, 3, 3, onnx.Int64, map[string]string{"schedule": "zero_snr:cosine:9"}), prior.ErrCard, "must be sample or velocity",
		},
		"time of bools": {model(t, 3, 3, onnx.Bool, nil), prior.ErrGraph, "not a time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := prior.Load("my.onnx", c.data)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %v with %q in one line", err, c.kind, c.want)
			}
		})
	}
}

func TestOpenMissingFile(t *testing.T) {
	t.Parallel()
	if _, err := prior.Open(filepath.Join(t.TempDir(), "no.onnx")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	got, err := prior.Entries([]string{"name=a=b", "channels=3"})
	if err != nil || got["ddiff.name"] != "a=b" || got["ddiff.channels"] != "3" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"name", "colour=red", "=x"} {
		if _, err := prior.Entries([]string{bad}); !errors.Is(err, prior.ErrCard) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	s, err := prior.ParseSchedule("linear:1e-4:0.02:1000")
	must(t, err)
	// Values of DDPM: β_0 = 1e-4 and ᾱ_999 ≈ 4.04e-5.
	if !(math.Abs(s.AlphaBar[0]-0.9999) <= 1e-12) || !(math.Abs(s.AlphaBar[999]-4.0358e-5) <= 1e-8) {
		t.Errorf("ᾱ runs from %g to %g", s.AlphaBar[0], s.AlphaBar[999])
	}
	scaled, err := prior.ParseSchedule("scaled_linear:0.0015:0.0195:1000")
	if err != nil || !(math.Abs(scaled.AlphaBar[0]-(1-0.0015)) <= 1e-12) {
		t.Errorf("scaled: %g, %v", scaled.AlphaBar[0], err)
	}
	cos, err := prior.ParseSchedule("cosine:100")
	if err != nil || !(cos.AlphaBar[99] <= 1e-3) || !(cos.AlphaBar[0] >= 0.99) {
		t.Errorf("cosine: %v", err)
	}
	table, err := prior.ParseSchedule("table:0.9:0.5:0.25:0")
	if err != nil || !slices.Equal(table.AlphaBar[:3], []float64{0.9, 0.5, 0.25}) || !(math.Abs(table.AlphaBar[3]-0.25e-3) <= 1e-12) {
		t.Errorf("table: %v, %v", table, err)
	}
	// Values of rescale_zero_terminal_snr of diffusers.
	zero, err := prior.ParseSchedule("zero_snr:scaled_linear:0.00085:0.012:1000")
	must(t, err)
	for at, want := range map[int]float64{0: 0.99915, 500: 0.24101878275731575, 998: 1.9678880566212916e-07, 999: 1.9678880566212916e-10} {
		if got := zero.AlphaBar[at]; !(math.Abs(got/want-1) <= 1e-9) {
			t.Errorf("zero SNR: ᾱ of %d is %g, want %g", at, got, want)
		}
	}
	for _, kind := range []string{"flow:", "sigma:"} {
		if levels, err := prior.ParseSchedule(kind + "zero_snr:cosine:100"); err != nil || levels.Steps() != 100 {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, bad := range []string{
		"", "linear", "linear:1:2:3:4", "linear:0.02:1e-4:1000", "linear:a:b:c", "cosine:1", "sqrt:4", "cosine:1e9", "table", "table:0.5", "table:0.5:0.5", "table:1:0.5",
		"table:0.5:0:0", "table:0.5:-1", "table:NaN:0.5", "zero_snr:", "flow", "flow:flow:cosine:9", "sigma:0.1",
	} {
		if _, err := prior.ParseSchedule(bad); err == nil {
			t.Errorf("ParseSchedule(%q) returned no error", bad)
		}
	}
}
