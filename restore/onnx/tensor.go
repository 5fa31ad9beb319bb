package onnx

import (
	"fmt"

	ort "github.com/yalue/onnxruntime_go"
)

// Tensor is a tensor in host memory that a Session can read or write. Its Go slice is what
// the runtime sees: change the contents, not the slice. The struct keeps the slice alive
// for as long as the runtime holds its address; call Close when no session uses it any more.
type Tensor struct {
	// F32 holds the elements of a float tensor, I64 those of an int64 tensor.
	F32 []float32
	I64 []int64

	dims  []int
	value ort.Value
}

// NewTensor makes a zeroed float or int64 tensor of at least one dimension.
func NewTensor(t DType, dims ...int) (*Tensor, error) {
	x := &Tensor{dims: dims}
	shape := ort.NewShape(int64s(dims)...)
	var err error
	switch t {
	case Float:
		x.F32 = make([]float32, size(dims))
		x.value, err = ort.NewTensor(shape, x.F32)
	case Int64:
		x.I64 = make([]int64, size(dims))
		x.value, err = ort.NewTensor(shape, x.I64)
	default:
		err = fmt.Errorf("element type %d is not supported", t)
	}
	if err != nil {
		return nil, fmt.Errorf("make tensor of shape %v: %w", dims, err)
	}
	return x, nil
}

// Dims is the shape.
func (t *Tensor) Dims() []int { return t.dims }

// Close releases the runtime's handle. The slices stay readable.
func (t *Tensor) Close() error {
	if t.value == nil {
		return nil
	}
	err := t.value.Destroy()
	t.value = nil
	return err
}

// NewTensors makes one tensor for each value, and closes all of them if one cannot be made.
func NewTensors(values ...Value) (tensors []*Tensor, err error) {
	for _, v := range values {
		t, err := NewTensor(v.DType, v.Dims...)
		if err != nil {
			CloseTensors(tensors)
			return nil, fmt.Errorf("input %s: %w", v.Name, err)
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// CloseTensors closes all of them.
func CloseTensors(tensors []*Tensor) {
	for _, t := range tensors {
		t.Close()
	}
}
