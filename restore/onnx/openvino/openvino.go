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
	Name string
	Dims []int
	F32  []float32
	I64  []int64
}

// Network is a compiled model. One goroutine at a time uses it.
type Network struct {
	network C.ddiff_network
}

// Compile compiles an ONNX model with properties of the CPU device, such as INFERENCE_PRECISION_HINT. Load comes first.
func Compile(model []byte, properties map[string]string) (*Network, error) {
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
	n := &Network{C.ddiff_compile((*C.char)(unsafe.Pointer(unsafe.SliceData(model))), C.size_t(len(model)),
		unsafe.SliceData(settings), C.size_t(len(settings)))}
	if err := failure(n.network.error); err != nil {
		return nil, err
	}
	return n, nil
}

// Run computes the outputs. The library reads and writes the slices directly.
func (n *Network) Run(arrays []Array) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	for _, a := range arrays {
		kind, data := C.int(C.DDIFF_F32), unsafe.Pointer(unsafe.SliceData(a.F32))
		if a.F32 == nil {
			kind, data = C.DDIFF_I64, unsafe.Pointer(unsafe.SliceData(a.I64))
		}
		pins.Pin(data)
		dims := make([]C.int64_t, len(a.Dims))
		for i, d := range a.Dims {
			dims[i] = C.int64_t(d)
		}
		name := C.CString(a.Name)
		err := failure(C.ddiff_bind(n.network, name, kind, unsafe.SliceData(dims), C.int64_t(len(dims)), data))
		C.free(unsafe.Pointer(name))
		if err != nil {
			return fmt.Errorf("bind %s: %w", a.Name, err)
		}
	}
	return failure(C.ddiff_infer(n.network))
}

// Close releases the network.
func (n *Network) Close() { C.ddiff_close(n.network) }
