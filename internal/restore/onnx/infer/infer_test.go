package infer_test

import (
	"errors"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// facts has x of [2, 6, 4] and its reshape to [first dimension of x, -1], as exporters write it, and a reshape to a shape that
// depends on data.
func facts() *infer.Facts {
	f := infer.NewFacts(nil)
	f.Declare(infer.Value{Name: "x", DType: infer.Float, Dims: []int{2, 6, 4}})
	f.Declare(infer.Value{Name: "data", DType: infer.Int64, Dims: []int{2}})
	constant := func(name string, dims []int64, x int) {
		f.Store(&onnxpb.TensorProto{Name: name, DataType: int32(infer.Int64), Dims: dims, RawData: infer.IntBytes([]int{x})})
	}
	constant("zero", nil, 0)
	constant("rest", []int64{1}, -1)
	node := func(op, out string, inputs ...string) {
		f.Produce(&onnxpb.NodeProto{OpType: op, Input: inputs, Output: []string{out}, Attribute: infer.EncodeAttributes(map[string]any{"axis": 0})})
	}
	node("Shape", "shape", "x")
	node("Gather", "batch", "shape", "zero")
	node("Unsqueeze", "batches", "batch", "axes")
	constant("axes", []int64{1}, 0)
	node("Concat", "target", "batches", "rest")
	node("Reshape", "y", "x", "target")
	node("Reshape", "free", "x", "data")
	return f
}

func TestTypeOf(t *testing.T) {
	t.Parallel()
	f := facts()
	// A sub-graph uses the values of the graph around it.
	for _, at := range []*infer.Facts{f, infer.NewFacts(f)} {
		y, err := at.TypeOf("y")
		if err != nil || y.DType != infer.Float || !slices.Equal(y.Dims, []int{2, 24}) {
			t.Errorf("y is %v, error %v; want [2 24]", y, err)
		}
	}
	if target, ok := f.IntegersOf(infer.Value{Name: "target"}); !ok || !slices.Equal(target, []int{2, -1}) {
		t.Errorf("the shape is %v, %v; want [2 -1]", target, ok)
	}
	for _, name := range []string{"free", "nothing"} {
		if v, err := f.TypeOf(name); !errors.Is(err, infer.ErrShape) {
			t.Errorf("%s is %v, error %v; want ErrShape", name, v, err)
		}
	}
}

// A claim with fixed dimensions that contradicts the inference is an error of the model.
func TestClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dims []int
		fits bool
	}{{[]int{2, 24}, true}, {[]int{-1, 24}, true}, {[]int{2, 25}, false}} {
		f := facts()
		f.Claim(infer.Value{Name: "y", DType: infer.Float, Dims: c.dims})
		if _, err := f.TypeOf("y"); errors.Is(err, infer.ErrShape) == c.fits {
			t.Errorf("claim %v: error %v", c.dims, err)
		}
	}
}
