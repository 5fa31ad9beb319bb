package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/restore/prior"
	"ddiff/restore/onnx"
)

// latents and images are the shapes in the bundle of writeLatentPrior.
var (
	latents = []int{-1, 12, -1, -1}
	images  = []int{-1, 3, -1, -1}
)

// bundleFiles are the files of a bundle in the folder b, beside an image.
type bundleFiles map[string][]byte

// with returns the bundle with other bytes of a file.
func (b bundleFiles) with(name string, data []byte) bundleFiles {
	out := maps.Clone(b)
	out["b/"+name] = data
	return out
}

// card returns the bundle with a changed card.
func (b bundleFiles) card(t *testing.T, change func(c map[string]any)) bundleFiles {
	t.Helper()
	c := map[string]any{}
	must(t, json.Unmarshal(b["b/"+prior.CardName], &c))
	change(c)
	data, err := json.Marshal(c)
	must(t, err)
	return b.with(prior.CardName, data)
}

// part returns the bundle with another part, and its digest in the card.
func (b bundleFiles) part(t *testing.T, role string, build func(g *onnx.Graph)) bundleFiles {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	build(g)
	data, err := g.Marshal(role)
	must(t, err)
	return b.with(role+".onnx", data).card(t, func(c map[string]any) {
		c["files"].(map[string]any)[role].(map[string]any)["sha256"] = regular.SHA256(data)
	})
}

// synthesis is a decoder of the right shapes.
func synthesis(g *onnx.Graph, z onnx.Value) onnx.Value {
	kernel := make([]float32, 12*3*2*2)
	for i := range kernel {
		kernel[i] = 0.01
	}
	attrs := map[string]any{"strides": []int{2, 2}, "kernel_shape": []int{2, 2}}
	return g.Apply("ConvTranspose", onnx.Float, images, attrs, z, g.Const(kernel, 12, 3, 2, 2))
}

// badBundles are bundles of latent priors that cannot be used.
func badBundles(t *testing.T) []badInput {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "b")
	writeLatentPrior(t, dir)
	sound := bundleFiles{"a.png": grey(16)}
	for _, name := range files(t, dir) {
		sound["b/"+name] = read(t, filepath.Join(dir, name))
	}
	var all []badInput
	solve := func(name string, files bundleFiles, prior string, code int, parts []string, args ...string) {
		args = append([]string{"a.png", "--task", "hdr", "--method", "latent_ddiff", "--preset", "ffhq", "--prior", prior}, args...)
		all = append(all, refused("bundle/run "+name, files, code, parts, args...))
	}
	add := func(name string, files bundleFiles, parts ...string) {
		parts = append([]string{"ddiff: "}, parts...)
		all = append(all, badInput{name: "bundle/check " + name, files: files, args: []string{"prior", "check", "b"}, code: 7, parts: parts})
		solve(name, files, "b", 7, parts)
	}
	z := func(g *onnx.Graph) onnx.Value { return g.Input("z", onnx.Float, latents...) }

	// Cards.
	for _, n := range []int{0, 1, 2, 3} {
		text := sound["b/"+prior.CardName]
		add(fmt.Sprintf("card cut %d", n), sound.with(prior.CardName, text[:len(text)*n/4]), "b/bundle.json")
	}
	for _, text := range []string{"null", "[]", "7", "\x1b[2J", strings.Repeat("[", 20_000), `{"card": "1"}`, "\xff\xfe", "name: a"} {
		add(fmt.Sprintf("card %.12q", text), sound.with(prior.CardName, []byte(text)), "b/bundle.json")
	}
	for field, values := range map[string][]any{
		"scale": {nil, 0, -1.5, "1", true}, "card": {nil, 2, "1"}, "kind": {nil, "pixel"}, "name": {nil, 3}, "license": {nil, ""}, "prediction": {nil, "noise"},
		"schedule": {nil, "linear", "cosine:x"}, "range": {nil, "0..1"}, "channels": {nil, 0, 17, 2.5}, "latent": {nil, 0, 4, 2000}, "factor": {nil, 0, -2, 4},
		"multiple_of": {nil, 0, 7, 4096}, "first_stage": {"vae", "kl", 1}, "files": {nil, map[string]any{}, []any{}},
	} {
		for _, value := range values {
			name := fmt.Sprintf("%s=%.12v", field, value)
			files := sound.card(t, func(c map[string]any) {
				if c[field] = value; value == nil {
					delete(c, field)
				}
			})
			add(name, files, "b")
		}
	}
	add("scale is missing", sound.card(t, func(c map[string]any) { delete(c, "scale") }), "b/bundle.json: scale must be positive")

	// Parts that do not fit each other or the card.
	add("latents of the encoder", sound.part(t, "encoder", func(g *onnx.Graph) {
		x := g.Input("x", onnx.Float, images...)
		g.Output("z", g.Apply("Concat", onnx.Float, []int{-1, 6, -1, -1}, map[string]any{"axis": 1}, x, x))
	}), "encoder.onnx: z has 6 channels, want 12")
	add("sides of the decoder", sound.part(t, "decoder", func(g *onnx.Graph) {
		v := z(g)
		small := g.Slice(v, 1, 0, 3)
		small.Dims = images
		g.Output("x", small)
	}), "the decoder returns the shape [1 3 16 16], want [1 3 32 32]")
	add("channels of the network", sound.part(t, "unet", func(g *onnx.Graph) {
		v := z(g)
		g.Input("t", onnx.Int64, -1)
		g.Output("eps", synthesis(g, v))
	}), "unet.onnx: eps has 3 channels, want 12")
	add("inputs of the network", sound.part(t, "unet", func(g *onnx.Graph) { g.Output("eps", z(g)) }), "unet.onnx", "it has the inputs [z], want [z t]")
	add("output of the quantizer", sound.part(t, "quantizer", func(g *onnx.Graph) { g.Output("code", g.Neg(z(g))) }), "quantizer.onnx", "[code], want [q]")
	add("another operator set", func() bundleFiles {
		g := onnx.NewGraph(onnx.DefaultOpset + 1)
		g.Output("q", g.Neg(z(g)))
		data, err := g.Marshal("quantizer")
		must(t, err)
		return sound.with("quantizer.onnx", data).card(t, func(c map[string]any) {
			c["files"].(map[string]any)["quantizer"].(map[string]any)["sha256"] = regular.SHA256(data)
		})
	}(), "quantizer.onnx has the operator set 18, the encoder 17")

	// Values.
	for _, value := range []float64{math.NaN(), math.Inf(1)} {
		add(fmt.Sprintf("a decoder that returns %v", value), sound.part(t, "decoder", func(g *onnx.Graph) {
			g.Output("x", g.Add(synthesis(g, z(g)), g.Scalar(float32(value))))
		}), "the decoder returns NaN or infinite values")
		add(fmt.Sprintf("a network that returns %v", value), sound.part(t, "unet", func(g *onnx.Graph) {
			v := z(g)
			g.Input("t", onnx.Int64, -1)
			g.Output("eps", g.Add(v, g.Scalar(float32(value))))
		}), "it predicts NaN or infinite values on noise")
	}
	add("an unknown operation", sound.part(t, "quantizer", func(g *onnx.Graph) {
		g.Output("q", g.Apply("Frobnicate", onnx.Float, latents, nil, z(g)))
	}), "Frobnicate")

	// An operation without a gradient: a bundle for pixel_dc only.
	bent := sound.part(t, "decoder", func(g *onnx.Graph) {
		g.Output("x", synthesis(g, g.Apply("Shrink", onnx.Float, latents, nil, z(g))))
	})
	solve("no gradient", bent, "b", 2, []string{"ddiff: ", "solver setting mode", "differentiate Shrink", "mode pixel_dc"}, "--solver", "mode=latent_dc")

	// Files that were exchanged, cut or removed.
	for _, role := range []string{"encoder", "quantizer", "decoder", "unet"} {
		name := role + ".onnx"
		other := map[string]string{"encoder": "decoder", "quantizer": "encoder", "decoder": "encoder", "unet": "quantizer"}[role]
		data := sound["b/"+name]
		altered := bytes.Clone(data)
		altered[len(altered)/2] ^= 1
		for change, bytes := range map[string][]byte{"exchanged": sound["b/"+other+".onnx"], "altered": altered, "cut": data[:len(data)/2], "empty": nil} {
			add(role+" "+change, sound.with(name, bytes), name+" was altered: its SHA-256 differs from bundle.json", "export the bundle again")
		}
		missing := maps.Clone(sound)
		delete(missing, "b/"+name)
		add(role+" missing", missing, name+": no such file")
	}
	noCard := maps.Clone(sound)
	delete(noCard, "b/"+prior.CardName)
	add("no card", noCard, "b/bundle.json: no such file")

	// Archives.
	archive, err := prior.Read(dir)
	must(t, err)
	tar := func(name string, data []byte, parts ...string) {
		files := bundleFiles{"a.png": grey(16), "b.tar": data}
		solve(name, files, "b.tar", 7, append([]string{"ddiff: ", "b.tar"}, parts...))
	}
	for i := range 8 {
		n := len(archive) * i / 8
		tar(fmt.Sprintf("archive cut at %d of %d", n, len(archive)), archive[:n])
	}
	other := bytes.Clone(archive)
	other[bytes.Index(other, []byte("ConvTranspose"))] ^= 1
	tar("archive altered", other, "was altered")
	solve("nowhere", bundleFiles{"a.png": grey(16)}, "nowhere", 7, []string{"ddiff: ", "nowhere: no such file", "the folder of a bundle"})
	solve("pixel method", sound, "b", 2, []string{"ddiff: ", "works on pixels", "use latent_ddiff"}, "--method", "ddiff")
	return all
}
