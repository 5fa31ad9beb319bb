package prior_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
)

// TestForeignNetworks: networks that diffusers and PyTorch exported run. OpenVINO computes them rewritten, and predicts what their files predict.
// tools/foreign_priors.py makes the files; DDIFF_FOREIGN names a folder with others.
func TestForeignNetworks(t *testing.T) {
	t.Run("cpu", func(t *testing.T) { testForeignNetworks(t, onnxtest.Runtime(t), "*.onnx", 6) })
	t.Run("openvino", func(t *testing.T) { testForeignNetworks(t, onnxtest.OpenVINO(t), "*_2?_free.onnx", 2) })
}

func testForeignNetworks(t *testing.T, rt *onnxruntime.Runtime, pattern string, least int) {
	t.Helper()
	dir := "testdata"
	if d := os.Getenv("DDIFF_FOREIGN"); d != "" {
		dir = d
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) < least {
		t.Fatalf("%d files in %s, error %v", len(files), dir, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		p, err := prior.Load(file, onnxtest.WithMetadata(t, data, card))
		if err != nil {
			t.Error(err)
			continue
		}
		v, err := p.Verify(t.Context(), rt)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if v != (prior.Verification{}) {
			t.Errorf("%s: %+v", file, v)
		}
	}
}

// network is a graph under construction with the inputs x [n, 3, 8, 8] and t [n] and the output z.
type network struct{ graph *onnxpb.GraphProto }

func newNetwork(n int) *network {
	port := func(name string, t onnxpb.TensorProto_DataType, dims ...int) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)},
			})
		}
		tensor := &onnxpb.TypeProto_Tensor{ElemType: int32(t), Shape: shape}
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: tensor}}
	}
	return &network{&onnxpb.GraphProto{
		Name:   "network",
		Input:  []*onnxpb.ValueInfoProto{port("x", onnxpb.TensorProto_FLOAT, n, 3, 8, 8), port("t", onnxpb.TensorProto_INT64, n)},
		Output: []*onnxpb.ValueInfoProto{port("z", onnxpb.TensorProto_FLOAT, n, 3, 8, 8)},
	}}
}

func (n *network) node(op, output string, inputs ...string) string {
	n.graph.Node = append(n.graph.Node, &onnxpb.NodeProto{OpType: op, Name: op + "_" + output, Input: inputs, Output: []string{output}})
	return output
}

func (n *network) ints(values ...int64) string {
	name := fmt.Sprint("ints", len(n.graph.Initializer))
	n.graph.Initializer = append(n.graph.Initializer, &onnxpb.TensorProto{
		Name: name, DataType: int32(onnxpb.TensorProto_INT64), Dims: []int64{int64(len(values))}, Int64Data: values,
	})
	return name
}

func (n *network) floats(values []float32, dims ...int64) string {
	name := fmt.Sprint("floats", len(n.graph.Initializer))
	n.graph.Initializer = append(n.graph.Initializer, &onnxpb.TensorProto{
		Name: name, DataType: int32(onnxpb.TensorProto_FLOAT), Dims: dims, FloatData: values,
	})
	return name
}

// prior returns the file with a card.
func (n *network) prior(t *testing.T) []byte {
	t.Helper()
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: n.graph,
	})
	must(t, err)
	return onnxtest.WithMetadata(t, data, card)
}

// grouped returns a network of batch n with one group normalisation in PyTorch's form; scale is the number of values that
// InstanceNormalization gets, split the computed shape before it, merged the shape after it.
func grouped(t *testing.T, n int64, scale int, split, merged []int64) []byte {
	t.Helper()
	g := newNetwork(int(n))
	ramp := make([]float32, 24)
	for i := range ramp {
		ramp[i] = float32(i)
	}
	wide := g.node("Add", "wide", g.node("Tile", "copies", "x", g.ints(1, 8, 1, 1)), g.floats(ramp, 24, 1, 1))
	r := g.node("Reshape", "groups", wide, g.node("Identity", "shape", g.ints(split...)))
	ones, gamma := make([]float32, scale), make([]float32, merged[1])
	for i := range ones {
		ones[i] = 1
	}
	for i := range gamma {
		gamma[i] = 1 + float32(i)/4
	}
	y := g.node("InstanceNormalization", "normal", r, g.floats(ones, int64(scale)), g.floats(make([]float32, scale), int64(scale)))
	y = g.node("Reshape", "image", y, g.ints(merged...))
	y = g.node("Mul", "scaled", y, g.floats(gamma, int64(len(gamma)), 1, 1))
	y = g.node("Add", "shifted", y, g.floats(gamma, int64(len(gamma)), 1, 1))
	y = g.node("Reshape", "again", y, g.ints(n, 24, 8, 8))
	g.node("Slice", "z", y, g.ints(0), g.ints(3), g.ints(1))
	return g.prior(t)
}

// TestVerifyKeepsFile: where OpenVINO cannot run a rewritten network, or predicts something else than the file, the prior predicts
// what the file does.
func TestVerifyKeepsFile(t *testing.T) {
	rt := onnxtest.OpenVINO(t)
	for name, c := range map[string]struct {
		data   []byte
		reason string
	}{
		"fits":         {grouped(t, 1, 2, []int64{1, 2, 768}, []int64{1, 24, 8, 8}), ""},
		"other shape":  {grouped(t, 1, 2, []int64{1, 2, 768}, []int64{1, 48, 4, 8}), "make session"},
		"across batch": {grouped(t, 2, 4, []int64{1, 4, 768}, []int64{2, 24, 8, 8}), "predictions of openvino differ"},
	} {
		p, err := prior.Load(name, c.data)
		must(t, err)
		v, err := p.Verify(t.Context(), rt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v.CPU != "" || (v.Unfused == "") != (c.reason == "") || !strings.Contains(v.Unfused, c.reason) {
			t.Errorf("%s: %+v", name, v)
		}
		n := 1
		if name == "across batch" {
			n = 2
		}
		net, err := p.Compile(rt, n, 8, 8, onnxruntime.FP32)
		if err != nil {
			t.Errorf("%s: after the check: %v", name, err)
			continue
		}
		for i := range net.X.F32 {
			net.X.F32[i] = float32(math.Sin(float64(i)))
		}
		if err := net.Run(t.Context()); err != nil {
			t.Errorf("%s: after the check: %v", name, err)
		}
		if got, want := float64(net.Y.F32[5]), firstGroup(net.X.F32, 5); !(math.Abs(got-want) <= 1e-3) {
			t.Errorf("%s: predicted %.4f, the file's normalisation is %.4f", name, got, want)
		}
		net.Close()
	}
}

// firstGroup returns element i of γ·normal + γ with γ = 1, where the first group has four copies of an image x [3, 8, 8],
// with 0, 1, 2, … added to its channels.
func firstGroup(x []float32, i int) float64 {
	mean, square := 0.0, 0.0
	for c := range 12 {
		for k := range 64 {
			v := float64(x[c%3*64+k]) + float64(c)
			mean += v / 768
			square += v * v / 768
		}
	}
	return (float64(x[i])-mean)/math.Sqrt(square-mean*mean+1e-5) + 1
}

// TestVerifyRefuses: networks that cannot be used are found before any item.
func TestVerifyRefuses(t *testing.T) {
	rt := onnxtest.Runtime(t)
	build := func(change func(g *network) string) []byte {
		g := newNetwork(1)
		g.node("Add", "z", "x", change(g))
		return g.prior(t)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"unknown operator": {build(func(g *network) string { return g.node("Frobnicate", "y", "x") }), "Frobnicate"},
		"undefined input":  {build(func(*network) string { return "nowhere" }), "nowhere"},
		"cycle":            {build(func(g *network) string { return g.node("Neg", "y", g.node("Neg", "w", "y")) }), "not acyclic"},
		"4 TiB": {build(func(g *network) string {
			return g.node("ReduceMean", "y", g.node("ConstantOfShape", "c", g.ints(1<<20, 1<<20)))
		}), "out of memory"},
		"a false name":    {build(func(g *network) string { return g.node("Gather", "device lost", "x", g.node("Abs", "at", g.ints(-7))) }), "device lost"},
		"infinite weight": {build(func(g *network) string { return g.floats([]float32{float32(math.Inf(1))}, 1) }), "NaN or infinite"},
		"one channel of three": {func() []byte {
			g := newNetwork(1)
			g.node("Slice", "z", "x", g.ints(0), g.ints(1), g.ints(1))
			return g.prior(t)
		}(), "Got: 3 Expected: 1"},
		"other size": {func() []byte {
			g := newNetwork(1)
			g.node("Slice", "z", "x", g.ints(0), g.ints(4), g.node("Identity", "axis", g.ints(2)))
			return g.prior(t)
		}(), "hape"},
	} {
		p, err := prior.Load(name, c.data)
		if err == nil {
			_, err = p.Verify(t.Context(), rt)
		}
		if !errors.Is(err, prior.ErrGraph) && !errors.Is(err, modelfile.ErrModel) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: message %q lacks %q", name, err, c.want)
		}
	}
}

// A network that OpenVINO computes in another way than the CPU provider is refused by OpenVINO, and is the CPU provider's with auto: here noise,
// which the libraries draw from generators of their own.
func TestVerifyOpenVINODisagrees(t *testing.T) {
	openVINO := onnxtest.OpenVINO(t)
	auto, err := onnxtest.Runtime(t).With(onnxruntime.Config{OpenVINO: onnxtest.OpenVINOLibrary(t)})
	must(t, err)
	defer auto.Close()
	g := newNetwork(1)
	g.node("RandomNormalLike", "z", "x")
	p, err := prior.Load("noise.onnx", g.prior(t))
	must(t, err)
	if _, err = p.Verify(t.Context(), openVINO); !errors.Is(err, onnxruntime.ErrFallback) || !strings.HasSuffix(err.Error(), "use --device cpu") {
		t.Errorf("openvino: %v", err)
	}
	if v, err := p.Verify(t.Context(), auto); err != nil || !strings.Contains(v.CPU, "predictions of openvino differ") {
		t.Errorf("auto: %+v, %v", v, err)
	}
	if v, err := p.Verify(t.Context(), onnxtest.Runtime(t)); err != nil || v != (prior.Verification{}) {
		t.Errorf("the CPU provider alone: %+v, %v", v, err)
	}
}
