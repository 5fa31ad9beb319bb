package check_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/check"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// writeBundle writes a bundle whose latents are the top left quarter of the red channel of 16×16 images. change may
// modify its card, and parts replace its graphs.
func writeBundle(t *testing.T, change func(c *prior.BundleCard), parts map[string]func(g *onnx.Graph)) string {
	t.Helper()
	dir := t.TempDir()
	latent := []int{1, 1, 8, 8}
	graphs := map[string]func(g *onnx.Graph){
		"encoder": func(g *onnx.Graph) {
			x := g.Input("x", onnx.Float, 1, 3, 16, 16)
			g.Output("z", g.Slice(g.Slice(g.Slice(x, 1, 0, 1), 2, 0, 8), 3, 0, 8))
		},
		"quantizer": func(g *onnx.Graph) { g.Output("q", g.Clip(g.Input("z", onnx.Float, latent...), -0.5, 0.5)) },
		"decoder": func(g *onnx.Graph) {
			z := g.Input("z", onnx.Float, latent...)
			wide := g.Concat(3, z, z)
			tall := g.Concat(2, wide, wide)
			g.Output("x", g.Concat(1, tall, tall, tall))
		},
		"unet": func(g *onnx.Graph) {
			z := g.Input("z", onnx.Float, latent...)
			g.Input("t", onnx.Int64, 1)
			g.Output("eps", g.Mul(z, g.Scalar(0.5)))
		},
	}
	c := &prior.BundleCard{
		Card: 1, Kind: "latent", Name: "tiny", License: "CC0-1.0", Prediction: prior.Epsilon, Schedule: "scaled_linear:0.0015:0.0195:1000",
		Range: "-1..1", Channels: 3, Latent: 1, Factor: 2, MultipleOf: 16, Scale: 1, Files: map[string]prior.BundleFile{},
	}
	for role, build := range graphs {
		if other, ok := parts[role]; ok {
			build = other
		}
		g := onnx.NewGraph(onnx.DefaultOpset)
		build(g)
		data, err := os.ReadFile(saveAs(t, filepath.Join(dir, role+".onnx"), g, nil))
		must(t, err)
		sum := sha256.Sum256(data)
		c.Files[role] = prior.BundleFile{File: role + ".onnx", SHA256: hex.EncodeToString(sum[:])}
	}
	if change != nil {
		change(c)
	}
	data, err := json.Marshal(c)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "bundle.json"), data, 0o644))
	return dir
}

func TestBundle(t *testing.T) {
	t.Parallel()
	r, err := check.Prior(t.Context(), onnxtest.Runtime(t), writeBundle(t, nil, nil), check.PriorOptions{Size: 10})
	must(t, err)
	if r.Kind != "bundle" || len(r.Parts) != 4 || len(r.Noise) != 10 || !slices.Equal(r.Latent, []int{1, 1, 8, 8}) || r.Shape != [4]int{1, 3, 16, 16} {
		t.Errorf("report %+v", r)
	}
	if r.FirstStage != prior.VQ || len(r.SHA256) != 64 || !r.Gradient || !(r.Reconstruction.PSNR <= 30) || !(r.Latents.Std <= 1) || len(r.Warnings) != 0 {
		t.Errorf("report %+v", r)
	}
}

// external moves the constants of a model file to a file beside it.
func external(t *testing.T, path string, change func(m *onnxpb.ModelProto)) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(data, m))
	for _, c := range m.Graph.Initializer {
		must(t, os.WriteFile(path+".data", c.RawData, 0o644))
		sum := sha256.Sum256(c.RawData)
		m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: "ddiff.external.m.onnx.data", Value: hex.EncodeToString(sum[:])})
		c.RawData, c.DataLocation = nil, onnxpb.TensorProto_EXTERNAL
		c.ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "m.onnx.data"}, {Key: "offset", Value: "0"}}
	}
	if change != nil {
		change(m)
	}
	data, err = proto.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(path, data, 0o644))
	return path
}

func TestExternalData(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	at := func(key, value string) func(m *onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) {
			c := m.Graph.Initializer[0]
			c.ExternalData = append(c.ExternalData, &onnxpb.StringStringEntryProto{Key: key, Value: value})
		}
	}
	run := func(path string) error {
		_, err := check.Prior(t.Context(), rt, path, check.PriorOptions{Size: 8, Timesteps: []int{1}})
		return err
	}
	must(t, run(external(t, score(t, 0.5, nil), nil)))
	must(t, run(external(t, score(t, 0.5, nil), at("length", "4"))))

	altered := external(t, score(t, 0.5, nil), nil)
	flip(t, altered+".data")
	wantError(t, run(altered), modelfile.ErrExternal, altered, "m.onnx.data was altered")
	missing := external(t, score(t, 0.5, nil), nil)
	must(t, os.Remove(missing+".data"))
	wantError(t, run(missing), modelfile.ErrExternal, "m.onnx.data does not exist; put it beside the model")
	wantError(t, run(external(t, score(t, 0.5, nil), at("length", "8"))), modelfile.ErrExternal, "cut short", "ends at byte 8 of 4")
	wantError(t, run(external(t, score(t, 0.5, nil), at("offset", "-4"))), modelfile.ErrExternal)
	wantError(t, run(external(t, score(t, 0.5, nil), at("offset", "x"))), modelfile.ErrExternal, `offset is "x"`)
	wantError(t, run(external(t, score(t, 0.5, nil), at("location", "../m"))), modelfile.ErrExternal, "not a file beside the model")
}
