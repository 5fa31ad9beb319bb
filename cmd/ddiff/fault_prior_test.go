package main_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

// card returns a complete model card for images with a number of channels.
func card(channels int) map[string]string {
	return map[string]string{
		"ddiff.card": "1", "ddiff.name": "tiny", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000",
		"ddiff.range": "-1..1", "ddiff.channels": strconv.Itoa(channels), "ddiff.multiple_of": "8",
		"ddiff.learned_variance": "false", "ddiff.license": "CC0-1.0",
	}
}

// writePrior writes a score model that takes a tenth of the image for noise.
func writePrior(t testing.TB, path string, channels int, metadata map[string]string) {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, channels, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(x, g.Scalar(0.1)))
	data, err := g.Marshal("tiny")
	must(t, err)
	write(t, path, onnxtest.WithMetadata(t, data, metadata))
}

// TestPriorWithoutBias runs priors whose normalisation has no bias. ONNX Runtime ended the process.
func TestPriorWithoutBias(t *testing.T) {
	t.Parallel()
	for name, bias := range map[string][]string{"left out": nil, "unnamed": {""}} {
		node := func(op, out string, inputs ...string) *onnxpb.NodeProto {
			return &onnxpb.NodeProto{OpType: op, Input: inputs, Output: []string{out}}
		}
		path := filepath.Join(t.TempDir(), "prior.onnx")
		writePrior(t, path, 3, card(3))
		m := &onnxpb.ModelProto{}
		must(t, proto.Unmarshal(read(t, path), m))
		m.Graph.Node = []*onnxpb.NodeProto{
			node("Shape", "shape", "x"), node("Reshape", "rows", "x", "pixels"), node("Add", "sum", "rows", "rows"),
			node("LayerNormalization", "normal", append([]string{"sum", "scale"}, bias...)...), node("Reshape", "eps", "normal", "shape"),
		}
		m.Graph.Initializer = []*onnxpb.TensorProto{
			{Name: "pixels", Dims: []int64{3}, DataType: int32(onnx.Int64), Int64Data: []int64{1, -1, 16}},
			{Name: "scale", Dims: []int64{16}, DataType: int32(onnx.Float), FloatData: slices.Repeat([]float32{0.1}, 16)},
		}
		data, err := proto.Marshal(m)
		must(t, err)
		write(t, path, data)
		if e := ddiff(t, "prior", "check", path, "--size", "16", "--threads", "1"); e.code != 0 {
			t.Errorf("%s: %s", name, e)
		}
	}
}

// TestBadPriors runs with unusable priors. They leave no output.
func TestBadPriors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	writePrior(t, path("wrong-channels.onnx"), 4, card(3))
	writePrior(t, path("no-card.onnx"), 3, nil)
	writePrior(t, path("wrong-entry.onnx"), 3, map[string]string{"ddiff.prediction": "noise"})
	whole, err := prior.Read(prior.Bundled)
	must(t, err)
	write(t, path("truncated.onnx"), whole[:len(whole)/2])
	write(t, path("text.onnx"), []byte("this is no model"))
	for _, c := range []struct {
		name    string
		message []string
	}{
		{"wrong-channels.onnx", []string{"channels is 3", "input x has 4"}},
		{"no-card.onnx", []string{"model card lacks card, name, prediction", "add it with: ddiff prior card " + path("no-card.onnx")}},
		{"wrong-entry.onnx", []string{"model card lacks card, name, schedule"}},
		{"truncated.onnx", []string{"not an ONNX file, or cut short"}},
		{"text.onnx", []string{"not an ONNX file, or cut short"}},
		{"nowhere.onnx", []string{"no such file", "--prior bundled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			for _, e := range []ended{
				restore(t, "--images", photograph("coffee"), "--task", "hdr", "--out", out, "--prior", path(c.name)),
				ddiff(t, "prior", "inspect", path(c.name)),
			} {
				wantCode(t, e, 7)
				wantMessage(t, e, append([]string{"ddiff: prior", path(c.name)}, c.message...)...)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("the output was made: %v", err)
			}
		})
	}
}

// TestUnusableNetwork: a network that predicts infinite values ends a run before any item.
func TestUnusableNetwork(t *testing.T) {
	t.Parallel()
	path, out := filepath.Join(t.TempDir(), "infinite.onnx"), filepath.Join(t.TempDir(), "out")
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(x, g.Scalar(float32(math.Inf(1)))))
	data, err := g.Marshal("infinite")
	must(t, err)
	write(t, path, onnxtest.WithMetadata(t, data, card(3)))
	for _, e := range []ended{
		restore(t, "--images", photograph("coffee"), "--task", "hdr", "--out", out, "--prior", path),
		ddiff(t, "prior", "check", path),
	} {
		wantCode(t, e, 7)
		wantMessage(t, e, path, "it predicts NaN or infinite values on noise")
	}
	if items, err := filepath.Glob(filepath.Join(out, "items", "*")); err != nil || len(items) > 0 {
		t.Errorf("items %v, error %v", items, err)
	}
}

// TestPriorOfOneSize: a file for images of one size ends a command for others before any item, and restores those in tiles of its size.
func TestPriorOfOneSize(t *testing.T) {
	t.Parallel()
	path, out := filepath.Join(t.TempDir(), "fixed.onnx"), filepath.Join(t.TempDir(), "out")
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, 32, 32)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(g.Reshape(g.Reshape(x, -1, 3, 32*32), -1, 3, 32, 32), g.Scalar(0.5)))
	data, err := g.Marshal("fixed")
	must(t, err)
	write(t, path, onnxtest.WithMetadata(t, data, card(3)))
	run := []string{"--images", photograph("coffee"), "--task", "denoise", "--steps", "2", "--size", "64", "--out", out, "--prior", path}
	e := restore(t, run...)
	wantCode(t, e, 7)
	wantMessage(t, e, path, "it takes images of 32×32 only, not of ", "use --tile 32, or size 32 of a campaign")
	if items, err := filepath.Glob(filepath.Join(out, "items", "*")); err != nil || len(items) > 0 {
		t.Errorf("items %v, error %v", items, err)
	}
	wantCode(t, restore(t, append(run, "--tile", "32", "--overlap", "8")...), 0)
	e = ddiff(t, "restore", photograph("coffee"), "--task", "denoise", "--steps", "2", "--out", out+".png", "--prior", path)
	wantCode(t, e, 0)
	wantMessage(t, e, "restored in tiles of 32 pixels", "the prior takes no images of its size")
	fits := filepath.Join(t.TempDir(), "fits.png")
	data, err = raster.EncodePNG(&raster.Image{Channels: 3, Height: 32, Width: 32, Pix: repeated(0, 3*32*32)})
	must(t, err)
	write(t, fits, data)
	e = ddiff(t, "restore", photograph("coffee"), fits, "--task", "denoise", "--sigma", "0.05", "--steps", "2", "--tile", "off", "--out", t.TempDir(), "--force", "--prior", path)
	wantCode(t, e, 3)
	wantMessage(t, e, "it takes images of 32×32 only")
	if !strings.Contains(e.stdout, "done=1 failed=1") { // one picture of another size ends no other
		t.Errorf("stdout %s", e.stdout)
	}
	if shown := ddiff(t, "prior", "inspect", path).stdout; !strings.Contains(shown, "32×32") {
		t.Errorf("prior inspect does not show the size:\n%s", shown)
	}
}

// TestPriorCard runs the command that an error message proposes.
func TestPriorCard(t *testing.T) {
	t.Parallel()
	whole, err := prior.Read(prior.Bundled)
	must(t, err)
	path := filepath.Join(t.TempDir(), "my prior.onnx")
	write(t, path, bare(t, whole))

	keys, more := prior.Keys()
	help := ddiff(t, "prior", "card", "--help").stdout
	for _, k := range slices.Concat(keys, more) {
		if !regexp.MustCompile(`\b` + k + `\b`).MatchString(help) {
			t.Errorf("the help lacks the key %s\n%s", k, help)
		}
	}
	e := ddiff(t, "prior", "inspect", path)
	wantCode(t, e, 7)
	wantMessage(t, e, path, "lacks "+strings.Join(keys, ", "))
	_, pasted, found := strings.Cut(strings.TrimSpace(e.stderr), "add it with: ")
	if !found {
		t.Fatalf("no command is proposed\n%v", e)
	}
	shell := exec.Command("sh", "-c", pasted)
	shell.Env = append(environment(), "PATH="+filepath.Dir(program)+":/usr/bin:/bin")
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pasted, err, out)
	}
	e = ddiff(t, "prior", "inspect", path)
	wantCode(t, e, 0)
	for _, want := range []string{"my-prior", "epsilon", "linear:1e-4:0.02:1000", "CC-BY-4.0"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("the card lacks %q\n%v", want, e)
		}
	}
	e = restore(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "10", "--out", filepath.Join(t.TempDir(), "out"), "--prior", path)
	wantCode(t, e, 0)

	e = ddiff(t, "prior", "card", path, "--set", "colour=red")
	wantCode(t, e, 2)
	wantMessage(t, e, `setting "colour=red" must be KEY=VALUE with one of the keys card, name`)
	wantCode(t, ddiff(t, "prior", "card", path), 2)
}

// bare returns a model without a card.
func bare(t *testing.T, data []byte) []byte {
	t.Helper()
	entries := map[string]string{}
	m, err := modelfile.ReadModel(data)
	must(t, err)
	for key := range m.Metadata() {
		if strings.HasPrefix(key, "ddiff.") {
			entries[key] = ""
		}
	}
	if len(entries) == 0 {
		t.Fatal("the bundled prior has no card")
	}
	return onnxtest.WithMetadata(t, data, entries)
}
