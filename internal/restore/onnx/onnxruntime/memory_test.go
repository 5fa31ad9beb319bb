package onnxruntime

import (
	"errors"
	"testing"
)

// Messages of the library and of published reports.
func TestWrapErrorRecognisesMemory(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]error{
		"std::bad_alloc": ErrMemory,
		"Non-zero status code returned while running Conv node. Name:'c' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 2147483648": ErrMemory,
		"bfc_arena.cc:342 Available memory of 1048576 is smaller than requested bytes of 33554432":                                                                                       ErrMemory,
		"BFC Arena ran out of memory trying to allocate 1024 bytes":                                                                                                                      ErrMemory,
		"CUDA failure 2: out of memory ; GPU=0 ; hostname=gpu1 ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_allocator.cc ; line=48 ; expr=cudaMalloc((void**)&p, size);": ErrMemory,
		"CUDNN failure 4: CUDNN_STATUS_ALLOC_FAILED ; GPU=0":                                                                                                                             ErrMemory,
		"CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0":                                                                                                                           ErrMemory,
		"vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY":                                                                                                                     ErrMemory,
		"WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.\n - While validating entries[1]":                                                     ErrMemory,
		"Buffer size (4294967296) exceeds the max buffer size limit (2147483648).":                                                                                                       ErrMemory,
		"WebGPU device lost (1): vkQueueSubmit failed with VK_ERROR_DEVICE_LOST":                                                                                                         ErrDeviceLost,
		"the driver cannot load the kernel GroupNorm_f16: error 2":                                                                                                                       ErrMemory,
		"CUDA failure 700: an illegal memory access was encountered ; GPU=0":                                                                                                             ErrDeviceLost,
		"CUDA failure 214: uncorrectable ECC error encountered ; GPU=3 ; hostname=gpu1":                                                                                                  ErrDeviceLost,
		"CUDA failure 220: uncorrectable NVLink error detected during the execution ; GPU=3":                                                                                             ErrDeviceLost,
		"CUDA failure 702: the launch timed out and was terminated ; GPU=0":                                                                                                              ErrDeviceLost,
		"CUDA failure 710: device-side assert triggered ; GPU=0":                                                                                                                         ErrDeviceLost,
		"CUDA failure 716: misaligned address ; GPU=0":                                                                                                                                   ErrDeviceLost,
		"CUDA failure 719: unspecified launch failure ; GPU=0":                                                                                                                           ErrDeviceLost,
		"CUDA failure 999: unknown error ; GPU=0":                                                                                                                                        ErrDeviceLost,
		"the driver cannot start the kernel GroupNorm: error 700":                                                                                                                        ErrDeviceLost,
		"CUDA failure 46: all CUDA-capable devices are busy or unavailable ; GPU=0":                                                                                                      ErrDevice,
		"CUDA failure 100: no CUDA-capable device is detected ; GPU=-1":                                                                                                                  ErrDevice,
		"CUDA failure 3: initialization error ; GPU=-1":                                                                                                                                  ErrDevice,
		"CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0":                                                                                                                      ErrDevice,
		"CUDNN failure 4004: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ; GPU=0":                                                                                               ErrMemory,
		"CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED ; GPU=0":                                                                                                                       ErrDevice,
		"CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0":                                                                                                                      ErrDevice,
		"CUBLAS failure 14: CUBLAS_STATUS_INTERNAL_ERROR ; GPU=0":                                                                                                                        ErrDevice,
		"CUFFT failure 5: CUFFT_INTERNAL_ERROR ; GPU=0":                                                                                                                                  ErrDevice,
		"CUDA failure 9: invalid configuration argument ; GPU=0":                                                                                                                         nil,
		"CUDA failure 209: no kernel image is available for execution on the device ; GPU=0":                                                                                             nil,
		"CUDNN failure 3000: CUDNN_STATUS_NOT_SUPPORTED ; GPU=0":                                                                                                                         nil,
		"Load model from memory failed: INVALID_PROTOBUF":                                                                                                                                nil,
		"Got invalid dimensions for input: x for the following indices index: 2 Got: 64 Expected: 32":                                                                                    nil,
	} {
		err := Device{Provider: ProviderCUDA}.wrapError("run", errors.New(message))
		for _, kind := range []error{ErrMemory, ErrDevice, ErrDeviceLost} {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%q is %v: %v, want %v", message, kind, errors.Is(err, kind), want)
			}
		}
		if !errors.Is(err, ErrRuntime) {
			t.Errorf("%q is not ErrRuntime", message)
		}
	}
	if (Device{}).wrapError("run", nil) != nil {
		t.Error("nil became an error")
	}
}

// A node of a model may be called like the failure of a GPU.
func TestWrapErrorLosesNoCPU(t *testing.T) {
	t.Parallel()
	for provider, lost := range map[string]bool{ProviderCPU: false, ProviderOpenVINO: false, ProviderCUDA: true, ProviderWebGPU: true} {
		for _, message := range lostMessages {
			err := Device{Provider: provider}.wrapError("run", errors.New("Non-zero status code returned while running Gather node. Name:'"+message+"'"))
			if errors.Is(err, ErrDeviceLost) != lost || !errors.Is(err, ErrRuntime) || errors.Is(err, ErrMemory) {
				t.Errorf("%s: %v", provider, err)
			}
		}
		if err := (Device{Provider: provider}).wrapError("run", errors.New("std::bad_alloc")); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", provider, err)
		}
	}
}
