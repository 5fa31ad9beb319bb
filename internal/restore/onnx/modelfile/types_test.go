package modelfile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

func TestTypes(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(18)
	x := g.Input("x", onnx.Float, -1, 3, 8, 8)
	attrs := map[string]any{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}}
	g.Output("y", g.Apply("Conv", onnx.Float, []int{-1, 4, 4, 4}, attrs, x, g.Const(onnxtest.Random(4*27, 1), 4, 3, 3, 3)))
	m := onnxtest.Parse(t, g)
	if _, err := m.Types(nil); !errors.Is(err, modelfile.ErrModel) || !strings.Contains(err.Error(), "input x") {
		t.Errorf("error %v, want ErrModel that names the input", err)
	}
	types, err := m.Types(map[string][]int{"x": {5, 3, 8, 8}})
	must(t, err)
	if y := types["y"]; y.DType != onnx.Float || !slices.Equal(y.Dims, []int{5, 4, 4, 4}) {
		t.Errorf("output %v, want float [5 4 4 4]", y)
	}
	types, err = m.Types(map[string][]int{"x": {5, 2, 8, 8}})
	if _, ok := types["y"]; err != nil || ok {
		t.Errorf("types %v, error %v; want no output for inputs that do not fit", types, err)
	}
}
