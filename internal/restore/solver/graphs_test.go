package solver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// TestGraphs writes the networks and steps that a GPU gets to the folder DDIFF_GRAPHS, for `make gpu-bundle`. Weights of the prior are left out:
// tools/gpu_bundle/network.py takes them from its file. DDIFF_GRAPH_SIZES has the batches and sides.
func TestGraphs(t *testing.T) {
	dir, sizes := os.Getenv("DDIFF_GRAPHS"), os.Getenv("DDIFF_GRAPH_SIZES")
	if dir == "" {
		dir, sizes = t.TempDir(), "2x32"
	}
	p := bundled(t)
	data, err := os.ReadFile("../../../internal/restore/prior/bundled/prior.onnx")
	must(t, err)
	var file onnxpb.ModelProto
	must(t, proto.Unmarshal(data, &file))
	weights := map[string][]byte{}
	for _, w := range file.Graph.Initializer {
		weights[w.Name] = w.RawData
	}
	write := func(name string, model []byte) {
		var m onnxpb.ModelProto
		must(t, proto.Unmarshal(model, &m))
		dropped := 0
		for _, w := range m.Graph.Initializer {
			if _, own, ok := strings.Cut(w.Name, "/"); ok && len(w.RawData) > 256 && bytes.Equal(w.RawData, weights[own]) {
				w.RawData, dropped = nil, dropped+len(w.RawData)
			}
		}
		out, err := proto.Marshal(&m)
		must(t, err)
		if dropped < len(out) {
			t.Errorf("%s has %d bytes without %d of weights", name, len(out), dropped)
		}
		must(t, os.WriteFile(filepath.Join(dir, name+".onnx"), out, 0o644))
	}
	for _, size := range strings.Fields(sizes) {
		var n, side int
		_, err := fmt.Sscanf(size, "%dx%d", &n, &side)
		must(t, err)
		for _, precision := range []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.FP16} {
			g := onnx.NewGraph(p.Opset())
			g.Half(precision == onnxruntime.FP16)
			y, err := p.Predict(g, g.Input("x", onnx.Float, n, 3, side, side), g.Input("t", onnx.Int64, 1))
			must(t, err)
			g.Output("y", y)
			model, err := g.Marshal("network")
			must(t, err)
			write(fmt.Sprintf("network_%s_b%d_%d", precision, n, side), model)
			for _, task := range []string{operator.SuperResolution, operator.PhaseRetrieval} {
				op := newOperator(t, task, operator.Shape{Channels: 3, Height: side, Width: side})
				sigma := 0.05
				s := resolve(t, method.Request{Method: "ddiff", Preset: "natural", Task: task, Sigma: &sigma, Steps: 60})
				m, err := builder{newRun(t, p, op, s), precision, unrolled(onnxruntime.ProviderCUDA), false}.step(n)
				must(t, err)
				if bytes.Contains(m.stages[0].Model, []byte("ReduceL2")) {
					t.Errorf("the step of %s has ReduceL2, which is slow on CUDA, see onnx.Graph.Norm", task)
				}
				write(fmt.Sprintf("%s_%s_b%d_%d", task, precision, n, side), m.stages[0].Model)
			}
		}
	}
}
