package prior_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// loaded checks what loading of a file gives, within limits.
func loaded(t *testing.T, data []byte) {
	fuzztest.Limit(t, 64<<20+16384*len(data), func() {
		p, err := prior.Load("p.onnx", data)
		if err != nil {
			if !errors.Is(err, prior.ErrBundle) && !errors.Is(err, prior.ErrCard) && !errors.Is(err, prior.ErrGraph) && !errors.Is(err, modelfile.ErrModel) {
				t.Errorf("unexpected kind of error: %v", err)
			}
			return
		}
		for i, a := range p.Schedule.AlphaBar {
			if !(a >= 0 && a < 1) || i > 0 && a > p.Schedule.AlphaBar[i-1] {
				t.Fatalf("ᾱ of step %d is %g", i, a)
			}
		}
		if p.Width() < 1 || p.StageWidth() < 0 || p.Card.TileSide() < 1 {
			t.Errorf("width %d, %d at the stage, tiles of %d", p.Width(), p.StageWidth(), p.Card.TileSide())
		}
		if n := p.Values(64, 64); !(n >= 0) {
			t.Errorf("%g values", n)
		}
		g := onnx.NewGraph(p.Opset())
		side := p.Card.MultipleOf
		x := g.Input("x", onnx.Float, p.Space().Dims([]int{1, p.Card.Channels, side, side})...)
		_, _ = p.Predict(g, x, g.Input("t", onnx.Int64, 1)) // an error or a prediction
	})
}

// FuzzLoad: any bytes are a prior with a card that fits its graph, or an error of its kind.
func FuzzLoad(f *testing.F) {
	f.Add(model(f, 3, 3, onnx.Int64, nil))
	f.Add(model(f, 3, 6, onnx.Float, map[string]string{"learned_variance": "true", "schedule": "cosine:50", "size": "64", "training": "none"}))
	f.Add(model(f, 3, 3, onnx.Float, map[string]string{"schedule": "flow:cosine:50", "prediction": "velocity"}))
	f.Add(model(f, 3, 3, onnx.Float, map[string]string{"schedule": "sigma:zero_snr:table:0.9:0.5", "prediction": "edm:0.5"}))
	f.Fuzz(loaded)
}

// FuzzBundle: any card with the parts of a bundle, of which the decoder is any model, is a latent prior or an error of its kind.
func FuzzBundle(f *testing.F) {
	dir := writeBundle(f, nil, nil)
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		must(f, err)
		return data
	}
	card, decoder := file(prior.CardName), file("decoder.onnx")
	f.Add(card, decoder)
	f.Add(bytes.Replace(card, []byte(`"scaled_linear:`), []byte(`"linear:`), 1), file("quantizer.onnx"))
	fixed := map[string][]byte{"encoder": file("encoder.onnx"), "quantizer": file("quantizer.onnx"), "unet": file("unet.onnx")}
	f.Fuzz(func(t *testing.T, card, decoder []byte) {
		parts := maps.Clone(fixed)
		parts["decoder"] = decoder
		var fields map[string]any
		if json.Unmarshal(card, &fields) == nil { // with the digests of the parts
			files, _ := fields["files"].(map[string]any)
			for role, entry := range files {
				if e, ok := entry.(map[string]any); ok && e["file"] == role+".onnx" {
					e["sha256"] = sha(parts[role])
				}
			}
			card, _ = json.Marshal(fields)
		}
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		add := func(name string, data []byte) {
			must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}))
			_, err := w.Write(data)
			must(t, err)
		}
		add(prior.CardName, card)
		for _, role := range slices.Sorted(maps.Keys(parts)) {
			add(role+".onnx", parts[role])
		}
		must(t, w.Close())
		loaded(t, out.Bytes())
	})
}
