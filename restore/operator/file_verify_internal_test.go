package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// TestAttackSlowFile: a file whose call takes long is refused after the limit.
func TestAttackSlowFile(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(17)
	x := g.Input("x", onnx.Float, 1, 3, 16, 16)
	const side = 2500
	wide := g.Expand(g.Slice(g.Slice(g.Slice(x, 1, 0, 1), 2, 0, 1), 3, 0, 1), 1, 1, side, side)
	for range 8 { // some 30 GFLOP each, and twice as many for the gradient
		wide = g.Mul(g.Apply("MatMul", onnx.Float, wide.Dims, nil, wide, wide), g.Const([]float32{1. / side}, 1))
	}
	g.Output("y", g.Slice(g.Slice(wide, 2, 0, 16), 3, 0, 16))
	data, err := g.Marshal("own")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Load("own.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	op, err := f.New(f.Smallest(verifySide))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	err = f.verifyWithin(t.Context(), onnxtest.Runtime(t), op, time.Second)
	if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "it has not ended after 1s") || time.Since(begin) > time.Minute {
		t.Errorf("error %v after %v", err, time.Since(begin))
	}
}
