package onnxruntime

import (
	"fmt"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"ddiff/restore/onnx"
)

// Tensor is a tensor in host memory that a Session reads or writes. The runtime accesses the Go slice directly: change
// its contents, do not replace it. Close the tensor after the last use by a session.
type Tensor struct {
	// F32 holds the elements of a float tensor, I64 those of an int64 tensor.
	F32 []float32
	I64 []int64

	dims  []int
	value ort.Value // of a tensor in Go's memory
	// own and allocator are of a tensor in the library's memory, see Binding. onDevice: the host cannot access it.
	own, allocator unsafe.Pointer
	onDevice       bool
}

// NewTensor makes a float or int64 tensor of zeros with at least one dimension.
func NewTensor(t onnx.DType, dims ...int) (*Tensor, error) {
	x := &Tensor{dims: dims}
	size, shape := onnx.Value{Dims: dims}.Size(), make(ort.Shape, len(dims))
	for i, d := range dims {
		shape[i] = int64(d)
	}
	var err error
	switch t {
	case onnx.Float:
		x.F32 = make([]float32, size)
		x.value, err = ort.NewTensor(shape, x.F32)
	case onnx.Int64:
		x.I64 = make([]int64, size)
		x.value, err = ort.NewTensor(shape, x.I64)
	default:
		err = fmt.Errorf("element type %d is not supported", t)
	}
	if err != nil {
		return nil, fmt.Errorf("make tensor of shape %v: %w", dims, err)
	}
	return x, nil
}

// Dims returns the shape.
func (t *Tensor) Dims() []int { return t.dims }

// handle returns the library's value, nil after Close.
func (t *Tensor) handle() unsafe.Pointer {
	switch {
	case t == nil:
		return nil
	case t.value == nil:
		return t.own
	}
	return handle(t.value, "ortValue")
}

// data returns the address of the first element of a tensor of the host.
func (t *Tensor) data() unsafe.Pointer {
	if t.I64 != nil {
		return unsafe.Pointer(unsafe.SliceData(t.I64))
	}
	return unsafe.Pointer(unsafe.SliceData(t.F32))
}

// bytes is the size of the elements.
func (t *Tensor) bytes() int64 { return int64(4*len(t.F32) + 8*len(t.I64)) }

// Close releases the runtime's handle. The slices stay readable.
func (t *Tensor) Close() error {
	if t.value == nil {
		return nil
	}
	err := t.value.Destroy()
	t.value = nil
	return err
}

// NewTensors makes one tensor for each value. On an error it closes all of them.
func NewTensors(values ...onnx.Value) (tensors []*Tensor, err error) {
	for _, v := range values {
		t, err := NewTensor(v.DType, v.Dims...)
		if err != nil {
			CloseTensors(tensors)
			return nil, fmt.Errorf("value %s: %w", v.Name, err)
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// CloseTensors closes the tensors.
func CloseTensors(tensors []*Tensor) {
	for _, t := range tensors {
		t.Close()
	}
}
