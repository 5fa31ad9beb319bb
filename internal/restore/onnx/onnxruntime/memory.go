package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Errors of a call that a smaller batch or another process may avoid.
var (
	// ErrMemory: the device or the host has too little memory for the model or the call. A smaller batch may fit.
	ErrMemory = errors.New("out of memory")
	// ErrDeviceLost: the device does not respond. Only a new process can use it again.
	ErrDeviceLost = errors.New("the device is lost")
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
	"CUDA failure 700",                         //
	"CUDA failure 719",                         // cudaErrorLaunchFailure
	"unspecified launch failure",               //
	"an illegal memory access was encountered", //
}

// wrapError wraps an error of the library with ErrRuntime, and with ErrMemory or ErrDeviceLost if its message matches. A CPU is
// never lost: the message of a failed call on it may have such words as the name of a node.
func (d Device) wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	err = lineError{err}
	kinds := []struct {
		kind     error
		messages []string
	}{{ErrMemory, memoryMessages}, {ErrDeviceLost, lostMessages}}
	if !d.gpu() {
		kinds = kinds[:1]
	}
	for _, k := range kinds {
		for _, m := range k.messages {
			if strings.Contains(err.Error(), m) {
				return fmt.Errorf("%s: %w: %w: %w", action, ErrRuntime, k.kind, err)
			}
		}
	}
	return fmt.Errorf("%s: %w: %w", action, ErrRuntime, err)
}

// Environmental reports whether an error is that of the device, of its memory or of the end of ctx, and not of the model.
func Environmental(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, ErrMemory) || errors.Is(err, ErrDeviceLost) || errors.Is(err, ErrFallback))
}

// lineError puts the library's messages of several lines on one line.
type lineError struct{ error }

func (e lineError) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }

func (e lineError) Unwrap() error { return e.error }
