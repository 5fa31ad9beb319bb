package operator_test

import (
	"errors"
	"runtime/debug"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// FuzzLoad: any bytes are an operator whose shapes follow, or an error of its kind, in memory in proportion to the file and its least image.
func FuzzLoad(f *testing.F) {
	f.Add(fileOf(f, 17, []int{-1, 3, 8, 8}, gainCard, halves))
	f.Add(fileOf(f, 18, []int{-1, 3, 16, 16}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
		small := g.Apply("Resize", onnx.Float, []int{-1, 3, 8, 8}, map[string]any{"mode": "linear"}, x, onnx.Value{}, g.Const([]float32{1, 1, 0.5, 0.5}, 4))
		return g.Apply("Conv", onnx.Float, []int{-1, 1, 8, 8}, map[string]any{"pads": []int{1, 1, 1, 1}}, small, g.Const(make([]float32, 27), 1, 3, 3, 3))
	})))
	f.Add(fileOf(f, 17, []int{-1, 3, 16, 16}, map[string]string{"ddiff.multiple_of": "4", "ddiff.parameter": "code", "ddiff.parameter_std": "0.5"}, func(g *onnx.Graph, x onnx.Value) {
		code := g.Input("code", onnx.Float, -1, 4)
		g.Output("y", g.Add(g.Slice(g.Reshape(x, -1, 3*16*16), 1, 0, 4), g.Exp(code)))
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 64<<20+16384*len(data), func() {
			file, err := operator.Load("own.onnx", data)
			if err != nil {
				if !errors.Is(err, operator.ErrFile) && !errors.Is(err, modelfile.ErrModel) && !errors.Is(err, onnx.ErrNoGradient) && !errors.Is(err, infer.ErrShape) {
					t.Errorf("unexpected kind of error: %v", err)
				}
				return
			}
			if op, err := file.New(file.Smallest(8)); err == nil {
				if n, err := op.Bytes(); !(n >= 0) {
					t.Errorf("%g bytes, error %v", n, err)
				}
			}
			_ = file.Fits(onnx.DefaultOpset, 3)
			if o := file.Outline(); len(o.Parameters) != len(file.Parameters) {
				t.Errorf("parameters %v, without the network %v", file.Parameters, o.Parameters)
			}
		})
	})
}

// TestLongFile: a file whose output depends on its image through more nodes than a recursion has stack for is refused, or works.
func TestLongFile(t *testing.T) {
	data := fileOf(t, 17, []int{-1, 3, 8, 8}, nil, output(func(g *onnx.Graph, x onnx.Value) onnx.Value {
		for range 150_000 {
			x = g.Neg(x)
		}
		return x
	}))
	defer debug.SetMaxStack(debug.SetMaxStack(48 << 20))
	if _, err := operator.Load("own.onnx", data); err != nil && !errors.Is(err, infer.ErrShape) {
		t.Error(err)
	}
}
