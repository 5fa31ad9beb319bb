package onnxruntime_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// A record has new inputs of all types in each call. WebGPU replays no copies, so that a model with an output that is also another value is computed
// without its record from the second call on.
func TestRecords(t *testing.T) {
	base := onnxtest.WebGPU(t)
	for name, c := range map[string]struct {
		build func(g *onnx.Graph, x, row, at onnx.Value) []onnx.Value
		want  func(x, row, at float32) []float32
		note  string
	}{
		"kernels": {func(g *onnx.Graph, x, row, at onnx.Value) []onnx.Value {
			time := g.Apply("Gather", onnx.Float, []int{1}, map[string]any{"axis": 0}, g.Const([]float32{5, 6, 8, 9, 7}, 5), at)
			return []onnx.Value{g.Add(x, time), g.Mul(x, g.Slice(row, 0, 1, 2))}
		}, func(x, row, at float32) []float32 { return []float32{x + []float32{5, 6, 8, 9, 7}[int(at)], x * row} }, ""},
		"a shared output": {func(g *onnx.Graph, x, row, at onnx.Value) []onnx.Value {
			sum := g.Add(g.Add(x, g.Slice(row, 0, 1, 2)), g.Cast(at, onnx.Float))
			return []onnx.Value{g.Mul(sum, sum), sum}
		}, func(x, row, at float32) []float32 { return []float32{(x + row + at) * (x + row + at), x + row + at} }, "it returns other values than a call"},
	} {
		var log bytes.Buffer
		rt, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: base.Provider(), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		must(t, err)
		g := onnx.NewGraph(onnx.DefaultOpset)
		inputs := []onnx.Value{g.Input("x", onnx.Float, 3), g.Input("row", onnx.Float, 2), g.Input("at", onnx.Int64, 1)}
		outputs := c.build(g, inputs[0], inputs[1], inputs[2])
		for i, v := range outputs {
			outputs[i].Name = fmt.Sprint("y", i)
			g.Output(outputs[i].Name, v)
		}
		model, err := g.Marshal("recorded")
		must(t, err)
		s, err := rt.Capturing().NewSession(model, onnx.Names(inputs), onnx.Names(outputs))
		must(t, err)
		b, err := s.Bind()
		must(t, err)
		var in, out []*onnxruntime.Tensor
		for _, v := range inputs {
			h, err := b.NewHost(v)
			must(t, err)
			in = append(in, h)
		}
		for i, v := range outputs {
			h, err := b.NewHost(v)
			must(t, err)
			must(t, b.SetOutput(i, h))
			out = append(out, h)
		}
		for k := range 5 {
			x, row := float32(10+k), float32(3*k)
			in[0].F32[2], in[1].F32[1], in[2].I64[0] = x, row, int64(k)
			for i, h := range in {
				must(t, b.SetInput(i, h))
			}
			must(t, b.Run(t.Context()))
			for i, want := range c.want(x, row, float32(k)) {
				if got := out[i].F32[2]; got != want {
					t.Errorf("%s, call %d: output %d is %v, want %v", name, k+1, i, got, want)
				}
			}
		}
		if got := log.String(); (got != "") != (c.note != "") || !strings.Contains(got, c.note) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: log %q, want %q", name, got, c.note)
		}
		b.Close()
		must(t, s.Close())
		must(t, rt.Close())
	}
}
