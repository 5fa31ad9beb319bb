package onnxruntime

/*
#cgo linux LDFLAGS: -ldl -lm
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

// The functions of ONNX Runtime's C interface that onnxruntime_go does not wrap, by their places in the table OrtApi. The table only grows: a
// place is the same in all versions of the library.
enum {
	GetErrorMessage = 2, CreateTensorAsOrtValue = 48, GetTensorMutableData = 51, CreateMemoryInfo = 68, CreateCpuMemoryInfo = 69,
	ReleaseStatus = 93, ReleaseMemoryInfo = 94, ReleaseValue = 96, CreateAllocator = 131, ReleaseAllocator = 132, RunWithBinding = 133,
	CreateIoBinding = 134, ReleaseIoBinding = 135, BindInput = 136, BindOutput = 137, SynchronizeBoundInputs = 202,
	SynchronizeBoundOutputs = 203, MemoryInfoGetDeviceType = 225, SessionGetMemoryInfoForOutputs = 381,
};

// The version of the table that onnxruntime_go asks for, which has all of them.
enum { ApiVersion = 29 };

enum { DeviceAllocator = 0, MemTypeCPUOutput = -1, MemTypeDefault = 0 }; // OrtAllocatorType and OrtMemType

typedef struct {
	void *const *(*get_api)(uint32_t version);
	const char *(*get_version)(void);
} ddiff_api_base; // OrtApiBase

typedef void *ddiff_status; // OrtStatus *, NULL without an error

static void *const *api;

// failure frees a status and returns its message, which the caller frees, or NULL.
static char *failure(ddiff_status status) {
	if (!status) return NULL;
	char *message = strdup(((const char *(*)(ddiff_status))api[GetErrorMessage])(status));
	((void (*)(ddiff_status))api[ReleaseStatus])(status);
	return message;
}

static void release(int function, void *object) {
	if (object) ((void (*)(void *))api[function])(object);
}

// ddiff_load finds the table of a library that the process has loaded.
static char *ddiff_load(const char *path) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!library) return strdup("it is not loaded");
	const ddiff_api_base *(*base)(void) = (const ddiff_api_base *(*)(void))dlsym(library, "OrtGetApiBase");
	api = base ? base()->get_api(ApiVersion) : NULL;
	dlclose(library);
	return api ? NULL : strdup("it lacks the interface of version 1.29");
}

static char *ddiff_bind(void *session, void **binding) {
	return failure(((ddiff_status (*)(void *, void **))api[CreateIoBinding])(session, binding));
}

static char *ddiff_set(int function, void *binding, const char *name, void *value) {
	return failure(((ddiff_status (*)(void *, const char *, void *))api[function])(binding, name, value));
}

// ddiff_run waits for copies to and from a device, which has streams of its own.
static char *ddiff_run(void *session, void *options, void *binding, int device) {
	ddiff_status (*wait_inputs)(void *) = (ddiff_status (*)(void *))api[SynchronizeBoundInputs];
	ddiff_status (*wait_outputs)(void *) = (ddiff_status (*)(void *))api[SynchronizeBoundOutputs];
	ddiff_status status = device ? wait_inputs(binding) : NULL;
	if (!status) status = ((ddiff_status (*)(void *, void *, void *))api[RunWithBinding])(session, options, binding);
	if (!status && device) status = wait_outputs(binding);
	return failure(status);
}

// ddiff_output_memory returns an allocator of the memory in which a session has an output, and whether it is a device's.
static char *ddiff_output_memory(void *session, size_t outputs, size_t output, void **allocator, int *device) {
	void **infos = calloc(outputs, sizeof *infos);
	ddiff_status status = ((ddiff_status (*)(void *, void **, size_t))api[SessionGetMemoryInfoForOutputs])(session, infos, outputs);
	if (!status) {
		((void (*)(void *, int *))api[MemoryInfoGetDeviceType])(infos[output], device);
		status = ((ddiff_status (*)(void *, void *, void **))api[CreateAllocator])(session, infos[output], allocator);
	}
	free(infos);
	return failure(status);
}

static char *host_memory(void *session, ddiff_status status, void *info, void **allocator) {
	if (!status) status = ((ddiff_status (*)(void *, void *, void **))api[CreateAllocator])(session, info, allocator);
	release(ReleaseMemoryInfo, info);
	return failure(status);
}

static char *ddiff_cpu_memory(void *session, void **allocator) {
	void *info = NULL;
	ddiff_status status = ((ddiff_status (*)(int, int, void **))api[CreateCpuMemoryInfo])(DeviceAllocator, MemTypeDefault, &info);
	return host_memory(session, status, info, allocator);
}

// ddiff_pinned_memory returns an allocator of the host's memory from which the GPU copies without a detour.
static char *ddiff_pinned_memory(void *session, int gpu, void **allocator) {
	void *info = NULL;
	ddiff_status status = ((ddiff_status (*)(const char *, int, int, int, void **))api[CreateMemoryInfo])("CudaPinned", DeviceAllocator, gpu, MemTypeCPUOutput, &info);
	return host_memory(session, status, info, allocator);
}

static char *ddiff_tensor(void *allocator, const int64_t *dims, size_t rank, int type, void **value, void **data) {
	ddiff_status status = ((ddiff_status (*)(void *, const int64_t *, size_t, int, void **))api[CreateTensorAsOrtValue])(allocator, dims, rank, type, value);
	if (!status) status = ((ddiff_status (*)(void *, void **))api[GetTensorMutableData])(*value, data);
	return failure(status);
}

static char *ddiff_operations(void *options, const char *ptx) { return ddiff_register(api, options, ptx); }

static void ddiff_release_binding(void *binding) { release(ReleaseIoBinding, binding); }
static void ddiff_release_allocator(void *allocator) { release(ReleaseAllocator, allocator); }
static void ddiff_release_value(void *value) { release(ReleaseValue, value); }
*/
import "C"

import (
	"context"
	_ "embed" // for the kernels
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"ddiff/restore/onnx"
)

// loadInterface finds the C interface of the library, which onnxruntime_go has loaded.
func loadInterface(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return failed(C.ddiff_load(name))
}

// kernels are those of kernels.cu in PTX, which ends with a zero byte.
var kernels = C.CString(ptx)

//go:embed kernels.ptx
var ptx string

// addOperations adds the domain "ddiff" to the options of a session, see kernels.c.
func addOperations(opts *ort.SessionOptions) error {
	return failed(C.ddiff_operations(handle(opts, "o"), kernels))
}

// failed returns the error of a call, and frees its message.
func failed(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(message))
	return errors.New(C.GoString(message))
}

// handle returns the library's pointer that an object of onnxruntime_go has in an unexported field.
func handle(object any, fields ...string) unsafe.Pointer {
	v := reflect.ValueOf(object)
	for _, f := range fields {
		v = reflect.Indirect(v).FieldByName(f)
	}
	return v.UnsafePointer()
}

// Binding has the tensors of the calls of a session that computes often. Tensors in the memory of the session's device, see NewOutput, are read and
// written in place: an output of one call can be an input of the next. On a GPU, tensors in the host's memory are copied: an input when
// SetInput binds it, an output at the end of each call. The CPU copies nothing. One goroutine at a time uses it.
type Binding struct {
	session *Session
	ort     unsafe.Pointer // the session
	binding unsafe.Pointer
	names   [2][]*C.char // of inputs and outputs
	bound   [2][]*Tensor
	record  *record        // nil without one
	pins    runtime.Pinner // of the slices of tensors in Go's memory
	tensors []*Tensor      // of the library's memory
}

// The two kinds of tensors of a binding.
const (
	bindInput = iota
	bindOutput
)

// Bind returns a binding without tensors. Close it before the session.
func (s *Session) Bind() (*Binding, error) {
	p, ok := s.program.(ortProgram)
	if !ok {
		return nil, errors.New("bind: the session is closed, or none of ONNX Runtime")
	}
	b := &Binding{session: s, ort: handle(p.session, "s", "ortSession")}
	if err := b.do("bind", func() error { return failed(C.ddiff_bind(b.ort, &b.binding)) }); err != nil { //nolint:gocritic // code of cgo
		return nil, err
	}
	for kind, names := range [2][]string{p.inputs, p.outputs} {
		for _, name := range names {
			b.names[kind] = append(b.names[kind], C.CString(name))
		}
		b.bound[kind] = make([]*Tensor, len(names))
	}
	if s.plain != nil {
		rec, err := newRecord(b)
		if err != nil {
			b.Close()
			return nil, err
		}
		b.record = rec
	}
	return b, nil
}

// do calls the library on the session's thread.
func (b *Binding) do(action string, f func() error) error {
	return b.session.device.wrapError(action, b.session.runtime.thread.do(f))
}

// NewOutput makes a tensor in the memory in which the session has output i. The host cannot access that of a GPU: F32 and I64 are then nil, and the elements
// undefined, otherwise zeros. Close closes the tensor.
func (b *Binding) NewOutput(i int, v onnx.Value) (*Tensor, error) {
	return b.newTensor(v, b.outputMemory(i))
}

func (b *Binding) outputMemory(i int) func(t *Tensor) error {
	return func(t *Tensor) error {
		var device C.int
		err := failed(C.ddiff_output_memory(b.ort, C.size_t(len(b.names[bindOutput])), C.size_t(i), &t.allocator, &device)) //nolint:gocritic // code of cgo
		t.onDevice = device != 0
		return err
	}
}

// NewHost makes a tensor in the host's memory, of zeros. Close closes the tensor.
func (b *Binding) NewHost(v onnx.Value) (*Tensor, error) {
	return b.newTensor(v, func(t *Tensor) error {
		return failed(C.ddiff_cpu_memory(b.ort, &t.allocator)) //nolint:gocritic // code of cgo
	})
}

// NewInput is NewHost for an input: copies to the device are fast. It must not be an output: CUDA of ONNX Runtime 1.29 then fails with "dst_data != src_data".
func (b *Binding) NewInput(v onnx.Value) (*Tensor, error) {
	return b.newTensor(v, func(t *Tensor) error {
		if b.session.device.NVIDIA() && failed(C.ddiff_pinned_memory(b.ort, C.int(b.session.device.Index), &t.allocator)) == nil { //nolint:gocritic // code of cgo
			return nil
		}
		return failed(C.ddiff_cpu_memory(b.ort, &t.allocator)) //nolint:gocritic // code of cgo
	})
}

func (b *Binding) newTensor(v onnx.Value, allocate func(t *Tensor) error) (*Tensor, error) {
	t := &Tensor{dims: v.Dims}
	switch {
	case b.session.program == nil:
		return nil, fmt.Errorf("make tensor %s: the session is closed", v.Name)
	case v.DType != onnx.Float && v.DType != onnx.Int64:
		return nil, fmt.Errorf("make tensor %s: element type %d is not supported", v.Name, v.DType)
	}
	dims := make([]C.int64_t, len(v.Dims))
	for i, d := range v.Dims {
		dims[i] = C.int64_t(d)
	}
	var data unsafe.Pointer
	err := b.do("make tensor "+v.Name, func() error {
		err := allocate(t)
		if err != nil {
			return err
		}
		return failed(C.ddiff_tensor(t.allocator, unsafe.SliceData(dims), C.size_t(len(dims)), C.int(v.DType), &t.own, &data)) //nolint:gocritic // code of cgo
	})
	b.tensors = append(b.tensors, t)
	if err != nil {
		return nil, err
	}
	switch {
	case t.onDevice:
	case v.DType == onnx.Float:
		t.F32 = unsafe.Slice((*float32)(data), v.Size())
		clear(t.F32)
	default:
		t.I64 = unsafe.Slice((*int64)(data), v.Size())
		clear(t.I64)
	}
	return t, nil
}

// SetInput binds input i, and copies a tensor of the host to a GPU.
func (b *Binding) SetInput(i int, t *Tensor) error {
	if b.record != nil {
		return b.record.feed.SetInput(i, t)
	}
	return b.set(bindInput, i, t)
}

// SetOutput binds output i.
func (b *Binding) SetOutput(i int, t *Tensor) error {
	if b.record != nil {
		return b.record.drain.SetOutput(i, t)
	}
	return b.set(bindOutput, i, t)
}

func (b *Binding) set(kind, i int, t *Tensor) error {
	copied := kind == bindInput && b.copies(t)
	if b.bound[kind][i] == t && !copied {
		return nil
	}
	value := t.handle()
	if value == nil || b.session.program == nil {
		return fmt.Errorf("bind %s: the tensor or the session is closed", C.GoString(b.names[kind][i]))
	}
	function := C.int(C.BindInput)
	if kind == bindOutput {
		function = C.BindOutput
	}
	if b.bound[kind][i] != t && t.value != nil {
		b.pins.Pin(t.data())
	}
	b.bound[kind][i] = t
	if copied {
		b.session.runtime.traffic.up.Add(t.bytes())
	}
	return b.do("bind", func() error { return failed(C.ddiff_set(function, b.binding, b.names[kind][i], value)) })
}

// copies reports whether calls copy a tensor between the host and the device.
func (b *Binding) copies(t *Tensor) bool { return b.session.device.gpu() && !t.onDevice }

// Run is Session.Run with the bound tensors. All inputs and outputs must be bound.
func (b *Binding) Run(ctx context.Context) error {
	if b.record != nil {
		return b.record.run(ctx, b)
	}
	return b.run(ctx)
}

// run is Run without the copies of a record.
func (b *Binding) run(ctx context.Context) error {
	device := C.int(0)
	if b.session.device.gpu() {
		device = 1
	}
	err := b.session.call(ctx, func() error {
		options, stop, err := terminatedBy(ctx)
		if err != nil {
			return err
		}
		defer stop()
		return failed(C.ddiff_run(b.ort, handle(options, "o"), b.binding, device))
	})
	if err != nil {
		return err
	}
	for _, t := range b.bound[bindOutput] {
		if b.copies(t) {
			b.session.runtime.traffic.down.Add(t.bytes())
		}
	}
	return nil
}

// Close releases the binding and the tensors that it made.
func (b *Binding) Close() {
	if b == nil || b.binding == nil {
		return
	}
	if b.record != nil {
		b.record.close()
	}
	_ = b.session.runtime.thread.do(func() error {
		C.ddiff_release_binding(b.binding)
		for _, t := range b.tensors {
			C.ddiff_release_value(t.own)
			C.ddiff_release_allocator(t.allocator)
		}
		return nil
	})
	for _, t := range b.tensors {
		*t = Tensor{dims: t.dims}
	}
	for _, names := range b.names {
		for _, name := range names {
			C.free(unsafe.Pointer(name))
		}
	}
	b.pins.Unpin()
	b.binding, b.bound = nil, [2][]*Tensor{}
}
