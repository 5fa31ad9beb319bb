package onnxruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Errors of a call that a smaller batch or another process may avoid.
var (
	// ErrMemory: the device or the host has too little memory for the model or the call. A smaller batch may fit.
	ErrMemory = errors.New("out of memory")
	// ErrDeviceLost: the device does not respond. Only a new process can use it again.
	ErrDeviceLost = errors.New("the device is lost")
	// ErrDevice: a call of NVIDIA's libraries failed for another reason than its arguments. A model that is known to be sound shows whether the device is.
	ErrDevice = errors.New("the device failed")
)

// The library reports lack of memory by its messages only. The comments name their sources.
var memoryMessages = []string{
	"std::bad_alloc", // the CPU, without an arena
	"bad allocation", // the same on Windows
	"Failed to allocate memory for requested buffer", // arenas of CPU and CUDA
	"ran out of memory trying to allocate",           // the CPU's and the plugins' arenas
	"Available memory of",                            // an arena under a limit
	"CUDA failure 2:",                                // cudaErrorMemoryAllocation
	"CUDA error cudaErrorMemoryAllocation",           //
	"CUDNN_STATUS_ALLOC_FAILED",                      //
	"ALLOCATION_FAILED",                              // CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
	"CUBLAS_STATUS_ALLOC_FAILED",                     //
	"CUDNN failure 4000",                             // CUDNN_STATUS_ALLOC_FAILED of cuDNN 9, as a number
	"VK_ERROR_OUT_OF_",                               // WebGPU on Vulkan: host or device memory
	"Out of memory",                                  // WebGPU
	"out of memory",                                  // CUDA and TensorRT
	"OutOfMemory",                                    // TensorRT and WebGPU
	"exceeds the max buffer size",                    // WebGPU: a tensor larger than a buffer can be
	"is larger than the maximum binding size",        // WebGPU: a tensor larger than a kernel can access
	"[Invalid Buffer",                                // WebGPU continues after it failed to create a buffer
	"Too many storage buffers in shader",             // WebGPU: a tensor of more pieces than a kernel can access
	"Requested allocation size",                      // TensorRT
	"bytes of memory",                                // OpenVINO: Failed to allocate N bytes of memory
}

var lostMessages = []string{
	"device lost",                              // WebGPU
	"Device is lost",                           //
	"VK_ERROR_DEVICE_LOST",                     //
	"cudaErrorIllegalAddress",                  // CUDA's context is unusable afterwards
	"unspecified launch failure",               //
	"an illegal memory access was encountered", //
}

// failedCall finds the library and the number of a failed call in messages of ONNX Runtime and of our kernels.
var failedCall = regexp.MustCompile(`(CUDA|CUDNN|CUBLAS|CUFFT) failure (\d+)|the driver cannot \w+ the kernel \S+: error (\d+)`)

// numbers are ranges of the numbers of failed calls. After those of lost, which NVIDIA's documentation calls an inconsistent state, the process cannot
// use the device; those of call are the fault of the arguments, the model or the build. All others are faults of the device or of its libraries.
var numbers = map[string]struct{ lost, call [][2]int }{
	"CUDA": {
		lost: [][2]int{{214, 214}, {220, 220}, {226, 227}, {700, 700}, {702, 702}, {709, 719}, {721, 721}, {999, 999}},
		call: [][2]int{{1, 1}, {9, 35}, {98, 98}, {200, 200}, {209, 209}, {218, 218}, {222, 225}, {300, 400}, {500, 500}, {701, 701}, {720, 720}, {800, 801}, {900, 908}},
	},
	"CUDNN":  {call: [][2]int{{2000, 3999}}},
	"CUBLAS": {call: [][2]int{{7, 8}, {15, 15}}},
	"CUFFT":  {call: [][2]int{{3, 4}, {7, 9}, {16, 16}}},
}

// numbered returns the class of a failed call of NVIDIA's libraries, nil for the fault of the call and for other messages.
func numbered(message string) error {
	m := failedCall.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	n, _ := strconv.Atoi(m[2] + m[3])
	if m[3] == "2" {
		return ErrMemory
	}
	of := numbers[cmp.Or(m[1], "CUDA")]
	within := func(r [2]int) bool { return r[0] <= n && n <= r[1] }
	switch {
	case slices.ContainsFunc(of.lost, within):
		return ErrDeviceLost
	case slices.ContainsFunc(of.call, within):
		return nil
	}
	return ErrDevice
}

// wrapError wraps an error of the library with ErrRuntime, and with ErrMemory, ErrDeviceLost or ErrDevice if its message matches. A CPU is
// never lost: the message of a failed call on it may have such words as the name of a node.
func (d Device) wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	err = lineError{err}
	has := func(part string) bool { return strings.Contains(err.Error(), part) }
	var kind error
	switch {
	case slices.ContainsFunc(memoryMessages, has):
		kind = ErrMemory
	case d.gpu() && slices.ContainsFunc(lostMessages, has):
		kind = ErrDeviceLost
	case d.NVIDIA():
		kind = numbered(err.Error())
	}
	if kind == nil {
		return fmt.Errorf("%s: %w: %w", action, ErrRuntime, err)
	}
	return fmt.Errorf("%s: %w: %w: %w", action, ErrRuntime, kind, err)
}

// Unusable reports whether a further call on the device would fail too: it is lost, or lacks an operation.
func Unusable(err error) bool { return errors.Is(err, ErrDeviceLost) || errors.Is(err, ErrFallback) }

// Environmental reports whether an error is that of the device, of its memory or of the end of ctx, and not of the model.
func Environmental(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrMemory) || errors.Is(err, ErrDevice) || Unusable(err))
}

// lineError puts the library's messages of several lines on one line.
type lineError struct{ error }

func (e lineError) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e lineError) Unwrap() error { return e.error }
