package openvino

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"
)

// loaded is the library of the process.
var (
	mu      sync.Mutex
	loaded  string // its path
	version string
)

// Load loads the library libopenvino_c at path, which finds the others beside it, and returns its version. A process can load one.
func Load(path string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	switch loaded {
	case path:
		return version, nil
	case "":
	default:
		return "", fmt.Errorf("load %s: this process has loaded another OpenVINO, %s", path, loaded)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	err := failure(C.ddiff_load(name))
	if err != nil {
		return "", fmt.Errorf("load %s: %w", path, err)
	}
	build := C.ddiff_version()
	defer C.free(unsafe.Pointer(build))
	loaded, version = path, C.GoString(build)
	return version, nil
}

// failure returns the error of a call, and frees its message.
func failure(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(message))
	return errors.New(C.GoString(message))
}

// Array is an input or an output: the elements of F32, or else of I64, with the dimensions.
type Array struct {
	Dims []int
	F32  []float32
	I64  []int64
}

// complete reports whether the array has the elements of its dimensions: the library does not know the length of its memory.
func (a Array) complete() bool {
	size := 1
	for _, d := range a.Dims {
		size *= d
	}
	return size == max(len(a.F32), len(a.I64)) && (a.F32 == nil) != (a.I64 == nil)
}

// Network is a compiled model. One goroutine at a time uses it.
type Network struct {
	network C.ddiff_network
	ports   []string
}

// Compile compiles an ONNX model with properties of the CPU device, such as INFERENCE_PRECISION_HINT. ports are the names of all
// inputs and outputs, in the order of Run. Load comes first.
func Compile(model []byte, ports []string, properties map[string]string) (*Network, error) {
	if len(model) == 0 {
		return nil, errors.New("the model is empty")
	}
	keys := slices.Sorted(maps.Keys(properties))
	settings := make([]C.ddiff_property, len(keys))
	for i, k := range keys {
		settings[i] = C.ddiff_property{C.CString(k), C.CString(properties[k])}
	}
	defer func() {
		for _, s := range settings {
			C.free(unsafe.Pointer(s.key))
			C.free(unsafe.Pointer(s.value))
		}
	}()
	compiled := C.ddiff_compile((*C.char)(unsafe.Pointer(unsafe.SliceData(model))), C.size_t(len(model)),
		unsafe.SliceData(settings), C.size_t(len(settings)))
	if compiled.error != nil {
		return nil, failure(compiled.error)
	}
	return &Network{compiled, ports}, nil
}

// Run computes the outputs. The library reads and writes the slices directly, and keeps their addresses until the next call, which
// replaces all of them.
func (n *Network) Run(arrays []Array) error {
	if n.network.request == nil {
		return errors.New("the network is closed")
	}
	if len(arrays) != len(n.ports) {
		return fmt.Errorf("%d arrays for %d inputs and outputs", len(arrays), len(n.ports))
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	for i, a := range arrays {
		if !a.complete() {
			return fmt.Errorf("bind %s: %d float and %d integer elements with the dimensions %v", n.ports[i], len(a.F32), len(a.I64), a.Dims)
		}
		kind, data := C.int(C.DDIFF_F32), unsafe.Pointer(unsafe.SliceData(a.F32))
		if a.F32 == nil {
			kind, data = C.DDIFF_I64, unsafe.Pointer(unsafe.SliceData(a.I64))
		}
		pins.Pin(data)
		dims := make([]C.int64_t, len(a.Dims))
		for i, d := range a.Dims {
			dims[i] = C.int64_t(d)
		}
		name := C.CString(n.ports[i])
		err := failure(C.ddiff_bind(n.network, name, kind, unsafe.SliceData(dims), C.int64_t(len(dims)), data))
		C.free(unsafe.Pointer(name))
		if err != nil {
			return fmt.Errorf("bind %s: %w", n.ports[i], err)
		}
	}
	return failure(C.ddiff_infer(n.network))
}

// Close releases the network.
func (n *Network) Close() {
	C.ddiff_close(n.network)
	n.network = C.ddiff_network{}
}
