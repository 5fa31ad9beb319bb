package prior_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// parts replace the graphs of a bundle by role; change may modify its card.
type parts map[string]func(g *onnx.Graph)

// writeBundle writes a bundle whose latents are the red channel of every second pixel.
func writeBundle(t testing.TB, change func(c *prior.BundleCard), replace parts) string {
	t.Helper()
	dir := t.TempDir()
	c := &prior.BundleCard{
		Card: 1, Kind: "latent", Name: "tiny", License: "CC0-1.0", Class: "207", Prediction: prior.Epsilon, Schedule: "scaled_linear:0.0015:0.0195:1000",
		Range: "-1..1", Channels: 3, Latent: 1, Factor: 2, MultipleOf: 8, Scale: 0.5, Files: map[string]prior.BundleFile{},
	}
	for role, build := range tinyParts() {
		if other, ok := replace[role]; ok {
			build = other
		}
		if build == nil {
			continue
		}
		g := onnx.NewGraph(onnx.DefaultOpset)
		if role == "unet" && replace["opset"] != nil {
			g = onnx.NewGraph(18)
		}
		build(g)
		data, err := g.Marshal(role)
		must(t, err)
		writeFile(t, filepath.Join(dir, role+".onnx"), data)
		c.Files[role] = prior.BundleFile{File: role + ".onnx", SHA256: sha(data)}
	}
	if change != nil {
		change(c)
	}
	writeCard(t, dir, c)
	return dir
}

func writeCard(t testing.TB, dir string, c *prior.BundleCard) {
	t.Helper()
	data, err := json.Marshal(c)
	must(t, err)
	writeFile(t, filepath.Join(dir, prior.CardName), data)
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o644))
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// encoderKernel selects the red channel of the top left pixel of 2×2, decoderKernel spreads a latent to all channels.
func encoderKernel(g *onnx.Graph) onnx.Value {
	k := make([]float32, 12)
	k[0] = 0.5
	return g.Const(k, 1, 3, 2, 2)
}

func tinyParts() parts {
	return parts{
		"encoder": func(g *onnx.Graph) {
			x := g.Input("x", onnx.Float, -1, 3, -1, -1)
			g.Output("z", g.Apply("Conv", onnx.Float, []int{-1, 1, -1, -1}, map[string]any{"strides": []int{2, 2}}, x, encoderKernel(g)))
		},
		"quantizer": func(g *onnx.Graph) { g.Output("q", g.Clip(g.Input("z", onnx.Float, -1, 1, -1, -1), -0.25, 0.25)) },
		"decoder": func(g *onnx.Graph) {
			g.Output("x", decoded(g, g.Input("z", onnx.Float, -1, 1, -1, -1)))
		},
		"unet": func(g *onnx.Graph) {
			z := g.Input("z", onnx.Float, -1, 1, -1, -1)
			g.Input("t", onnx.Int64, -1)
			g.Output("eps", g.Mul(z, g.Scalar(0.5)))
		},
	}
}

func decoded(g *onnx.Graph, z onnx.Value) onnx.Value {
	k := make([]float32, 12)
	for i := range k {
		k[i] = 2
	}
	return g.Apply("ConvTranspose", onnx.Float, []int{-1, 3, -1, -1}, map[string]any{"strides": []int{2, 2}}, z, g.Const(k, 1, 3, 2, 2))
}

func TestBundle(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	dir := writeBundle(t, nil, nil)
	p, err := prior.Open(dir)
	must(t, err)
	if l := p.Card.Latent; l == nil || *l != (prior.Latent{FirstStage: prior.VQ, Channels: 1, Factor: 2, Scale: 0.5, Class: "207"}) ||
		p.Card.Channels != 3 || p.Schedule.Steps() != 1000 || p.Parameters() < 24 {
		t.Errorf("card %+v", p.Card)
	}
	if v, err := p.Verify(t.Context(), rt); err != nil || v != (prior.Verification{}) {
		t.Errorf("%+v, %v", v, err)
	}
	s := p.Space()
	if d := s.Dims([]int{2, 3, 16, 8}); !s.Latent() || d[0] != 2 || d[1] != 1 || d[2] != 8 || d[3] != 4 {
		t.Errorf("latents of %v", d)
	}
	g := onnx.NewGraph(p.Opset())
	if _, err := p.Predict(g, g.Input("z", onnx.Float, 1, 3, 8, 8), g.Input("t", onnx.Int64, 1)); err == nil || !strings.Contains(err.Error(), "latent of 3 channels") {
		t.Errorf("prediction of an image: %v", err)
	}
	plain, err := prior.Open(prior.Bundled)
	if err != nil || plain.Space().Latent() || plain.Card.Latent != nil {
		t.Errorf("the bundled prior: %+v, %v", plain.Card, err)
	}
}

// TestArchive: the folder and its archive are one prior with one digest; an archive that tar made of the folder is the same prior.
func TestArchive(t *testing.T) {
	t.Parallel()
	dir := writeBundle(t, nil, nil)
	data, err := prior.Read(dir)
	must(t, err)
	again, err := prior.Read(writeBundle(t, nil, nil))
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("equal bundles have different archives, %v", err)
	}
	// Results, campaigns and stores of earlier versions have this digest of the bundle.
	if got, want := sha(data), "2d6039d90dc00ccc92159df99f4da396634e914b681047d968852fcddabc785f"; got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
	r := tar.NewReader(bytes.NewReader(data))
	var names []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "bundle.json encoder.onnx quantizer.onnx decoder.onnx unet.onnx" {
		t.Errorf("archive of %s", got)
	}
	var foreign bytes.Buffer
	w := tar.NewWriter(&foreign)
	for _, name := range []string{"unet.onnx", "decoder.onnx", "quantizer.onnx", "bundle.json", "encoder.onnx"} {
		content := read(t, filepath.Join(dir, name))
		must(t, errors.Join(w.WriteHeader(&tar.Header{Name: "./tiny/" + name, Mode: 0o600, Uid: 1000, Size: int64(len(content))}), writeTo(w, content)))
	}
	must(t, w.Close())
	// The card states the names of the files.
	var renamed bytes.Buffer
	w = tar.NewWriter(&renamed)
	card := string(read(t, filepath.Join(dir, "bundle.json")))
	for role, name := range map[string]string{"unet": "n.onnx", "decoder": "first_stage_decoder.onnx", "quantizer": "q", "encoder": "first_stage_encoder.onnx"} {
		card = strings.ReplaceAll(card, role+".onnx", name)
		content := read(t, filepath.Join(dir, role+".onnx"))
		must(t, errors.Join(w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}), writeTo(w, content)))
	}
	must(t, errors.Join(w.WriteHeader(&tar.Header{Name: "bundle.json", Mode: 0o600, Size: int64(len(card))}), writeTo(w, []byte(card)), w.Close()))
	for name, content := range map[string][]byte{"canonical": data, "foreign": foreign.Bytes(), "renamed": renamed.Bytes()} {
		path := filepath.Join(t.TempDir(), "b.tar")
		writeFile(t, path, content)
		p, err := prior.Open(path)
		if err != nil || p.SHA256 != sha(content) || p.Card.Name != "tiny" {
			t.Errorf("%s archive: %v", name, err)
		}
	}

	// External data is embedded, and the card has the digest of the result.
	m := &onnxpb.ModelProto{}
	path := filepath.Join(dir, "encoder.onnx")
	must(t, proto.Unmarshal(read(t, path), m))
	for _, c := range m.Graph.Initializer {
		writeFile(t, path+".data", c.RawData)
		c.RawData, c.DataLocation = nil, onnxpb.TensorProto_EXTERNAL
		c.ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "encoder.onnx.data"}}
	}
	outside, err := proto.Marshal(m)
	must(t, err)
	writeFile(t, path, outside)
	c, err := prior.ReadBundleCard(dir)
	must(t, err)
	c.Files["encoder"] = prior.BundleFile{File: "encoder.onnx", SHA256: sha(outside)}
	writeCard(t, dir, c)
	if _, err := prior.Open(dir); err != nil {
		t.Errorf("external data: %v", err)
	}
}

func writeTo(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// TestBadBundles: each defect is one line that names the bundle and the defect, before any item.
func TestBadBundles(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	changed := func(change func(c *prior.BundleCard)) string { return writeBundle(t, change, nil) }
	part := func(role string, build func(g *onnx.Graph)) string { return writeBundle(t, nil, parts{role: build}) }
	file := func(change func(path string) error) string {
		dir := writeBundle(t, nil, nil)
		path := filepath.Join(dir, "decoder.onnx")
		must(t, errors.Join(os.Remove(path), change(path)))
		return dir
	}
	exchanged := writeBundle(t, nil, nil)
	writeFile(t, filepath.Join(exchanged, "decoder.onnx"), read(t, filepath.Join(exchanged, "encoder.onnx")))
	latent := func(g *onnx.Graph, channels int) onnx.Value { return g.Input("z", onnx.Float, -1, channels, -1, -1) }
	for name, c := range map[string]struct {
		dir  string
		want string
	}{
		"no card":        {t.TempDir(), "bundle.json: no such file"},
		"card":           {changed(func(c *prior.BundleCard) { c.Card = 2 }), "bundle.json: card: want 1"},
		"kind":           {changed(func(c *prior.BundleCard) { c.Kind = "pixel" }), "kind: want latent"},
		"first stage":    {changed(func(c *prior.BundleCard) { c.FirstStage = "vae" }), "first_stage: want vq or kl"},
		"schedule":       {changed(func(c *prior.BundleCard) { c.Schedule = "sqrt:3" }), "schedule: kind"},
		"multiple":       {changed(func(c *prior.BundleCard) { c.MultipleOf = 7 }), "multiple_of must be a multiple of factor"},
		"huge multiple":  {changed(func(c *prior.BundleCard) { c.MultipleOf = 1 << 20 }), "multiple_of must be a multiple of factor, at most 1024"},
		"no scale":       {changed(func(c *prior.BundleCard) { c.Scale = 0 }), "scale must be positive"},
		"negative scale": {changed(func(c *prior.BundleCard) { c.Scale = -1 }), "scale must be positive"},
		"escape":         {changed(func(c *prior.BundleCard) { c.Files["unet"] = prior.BundleFile{File: "../unet.onnx"} }), "unet must name a file in the same folder"},
		"card as part":   {changed(func(c *prior.BundleCard) { c.Files["unet"] = prior.BundleFile{File: "bundle.json"} }), "unet must name a file in the same folder"},
		"no part":        {changed(func(c *prior.BundleCard) { c.Files["unet"] = prior.BundleFile{File: "no.onnx"} }), "no.onnx: no such file"},
		"no quantizer":   {changed(func(c *prior.BundleCard) { delete(c.Files, "quantizer") }), "quantizer is missing, which the first stage vq needs"},
		"KL quantizer":   {changed(func(c *prior.BundleCard) { c.FirstStage = prior.KL }), "quantizer is given, which the first stage kl has not"},
		"channels":       {changed(func(c *prior.BundleCard) { c.Latent = 4 }), "encoder.onnx: z has 1 channels, want 4 according to the card"},
		"factor":         {changed(func(c *prior.BundleCard) { c.Factor = 4 }), "encoder returns the shape [1 1 16 16], want [1 1 8 8]"},
		"exchanged":      {exchanged, "decoder.onnx was altered"},
		"missing":        {file(func(string) error { return nil }), "decoder.onnx: no such file"},
		"pipe":           {file(func(path string) error { return syscall.Mkfifo(path, 0o600) }), "not a regular file but a pipe"},
		"device":         {file(func(path string) error { return os.Symlink("/dev/zero", path) }), "not a regular file but a device"},
		"loop":           {file(func(path string) error { return os.Symlink(path, path) }), "too many levels of symbolic links"},
		"names":          {part("quantizer", func(g *onnx.Graph) { g.Output("code", g.Neg(latent(g, 1))) }), "quantizer.onnx: not a score model: it has the outputs [code], want [q]"},
		"inputs":         {part("decoder", func(g *onnx.Graph) { g.Output("x", g.Neg(g.Input("y", onnx.Float, 1))) }), "it has the inputs [y], want [z]"},
		"decoder":        {part("decoder", func(g *onnx.Graph) { g.Output("x", latent(g, 1)) }), "decoder.onnx: x has 1 channels, want 3"},
		"small image": {part("decoder", func(g *onnx.Graph) {
			z := latent(g, 1)
			g.Output("x", g.Apply("Concat", onnx.Float, []int{-1, 3, -1, -1}, map[string]any{"axis": 1}, z, z, z))
		}), "the decoder returns the shape [1 3 16 16], want [1 3 32 32]"},
		"NaN": {part("decoder", func(g *onnx.Graph) {
			z := decoded(g, latent(g, 1))
			nan := g.Apply("Mul", onnx.Float, z.Dims, nil, z, g.Scalar(float32(math.NaN())))
			g.Output("x", nan)
		}), "the decoder returns NaN or infinite values"},
		"network": {part("unet", func(g *onnx.Graph) {
			z := latent(g, 1)
			g.Input("t", onnx.Int64, -1)
			g.Output("eps", decoded(g, z))
		}), "unet.onnx: eps has 3 channels, want 1"},
		"operator": {part("encoder", func(g *onnx.Graph) {
			g.Output("z", g.Apply("Frobnicate", onnx.Float, []int{-1, 1, -1, -1}, nil, g.Input("x", onnx.Float, -1, 3, -1, -1)))
		}), "Frobnicate"},
		"operator set": {writeBundle(t, nil, parts{"opset": func(*onnx.Graph) {}}), "unet.onnx has the operator set 18, the encoder 17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := prior.Open(c.dir)
			if err == nil {
				_, err = p.Verify(t.Context(), rt)
			}
			if !errors.Is(err, prior.ErrBundle) {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.dir) {
				t.Errorf("message %q lacks %q", err, c.want)
			}
		})
	}
}

// TestDamagedArchives: every cut of an archive within its parts, and an altered byte of a part, is an error.
func TestDamagedArchives(t *testing.T) {
	t.Parallel()
	data, err := prior.Read(writeBundle(t, nil, nil))
	must(t, err)
	for n := 512; n < len(data)-1024-512; n += 256 {
		if _, err := prior.Load("cut.tar", data[:n]); !errors.Is(err, prior.ErrBundle) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	at := bytes.Index(data, []byte("ConvTranspose"))
	altered := bytes.Clone(data)
	altered[at] ^= 1
	if _, err := prior.Load("a.tar", altered); !errors.Is(err, prior.ErrBundle) || !strings.Contains(err.Error(), "decoder.onnx was altered") {
		t.Errorf("altered part: %v", err)
	}
}

// TestNoGradient: a decoder with an operation without a rule is usable, and its card names the operation.
func TestNoGradient(t *testing.T) {
	t.Parallel()
	dir := writeBundle(t, nil, parts{"decoder": func(g *onnx.Graph) {
		z := g.Input("z", onnx.Float, -1, 1, -1, -1)
		g.Output("x", decoded(g, g.Apply("Shrink", onnx.Float, z.Dims, nil, z)))
	}})
	p, err := prior.Open(dir)
	must(t, err)
	if _, err := p.Verify(t.Context(), onnxtest.Runtime(t)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.Card.Latent.NoGradient, "Shrink") {
		t.Errorf("gradient: %q", p.Card.Latent.NoGradient)
	}
}
