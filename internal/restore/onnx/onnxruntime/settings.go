package onnxruntime

import (
	"cmp"
	"maps"
	"os"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"ddiff/internal/restore/onnx/modelfile"
)

// sessionSettings are the entries of the configuration of a session on d.
func (r *Runtime) sessionSettings(d Device) map[string]string {
	s := map[string]string{
		// Small blocks of work balance the load when a core is slower or shared.
		"session.dynamic_block_base": "4",
		// Results must not depend on flushing subnormal numbers to zero.
		"session.set_denormal_as_zero": "0",
	}
	if d.gpu() {
		// Refuse nodes that would run on the CPU, see guard.go.
		s[guardKey] = "1"
	}
	if r.Divides() {
		// Threads that wait actively for the next part of a step would take the cores from the network's.
		s["session.intra_op.allow_spinning"] = "0"
	}
	return s
}

// cudaSettings are the options of the CUDA provider, all explicit, so that the library's defaults do not matter. half: the model has values of 16 bits.
// Without use_tf32 the library takes the tensor cores from the convolutions of every type (CreateCudnnFeExecutionPlan in its conv.cc, 1.30); noTF32
// keeps the values of 32 bits exact.
func cudaSettings(index int, capture, half bool) map[string]string {
	return map[string]string{
		"device_id":                    strconv.Itoa(index),
		"enable_cuda_graph":            flag(capture),
		"arena_extend_strategy":        "kSameAsRequested", // with fixed shapes nothing grows after the first call
		"cudnn_conv_algo_search":       "HEURISTIC",        // makes the same choice in every run
		"cudnn_conv_use_max_workspace": "1",
		"do_copy_in_default_stream":    "1",
		"use_tf32":                     flag(half),
		"prefer_nhwc":                  "0",
	}
}

// tensorRTSettings are the options of the TensorRT provider. TF32 is not among them (microsoft/onnxruntime#26029): see
// noTF32.
func tensorRTSettings(index int, cache string) map[string]string {
	return map[string]string{
		"device_id":               strconv.Itoa(index),
		"trt_fp16_enable":         "0", // the model in float16 keeps norms in float32
		"trt_engine_cache_enable": "1",
		"trt_engine_cache_path":   cache,
		"trt_timing_cache_enable": "1",
		"trt_timing_cache_path":   cache,
	}
}

// noTF32 is the environment variable that disables TF32, factors of 10 bits, in NVIDIA's libraries. They read it once. A person may have set it.
const noTF32 = "NVIDIA_TF32_OVERRIDE"

func tf32() string { return cmp.Or(os.Getenv(noTF32), "0") }

// webGPUSettings are the options of the WebGPU provider. The library adds a prefix to each key and ignores unknown keys.
func webGPUSettings(capture bool) map[string]string {
	return map[string]string{
		"deviceId":           "0",
		"enableGraphCapture": flag(capture),
		// The device computes int64 values in 32 bits, which suffice for the time index. Without this entry such nodes
		// run on the CPU.
		"enableInt64": "1",
	}
}

// flag is a setting that is on or off.
func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// SettingOpenVINO is the name of OpenVINO's version in NetworkSettings. Results that ONNX Runtime's plugin for OpenVINO computed have none.
const SettingOpenVINO = "openvino.version"

// NetworkSettings returns the configuration of a session whose network computes in p and the provider's options, in the form of the library, without
// paths and the number of threads. Results with equal settings, precision, library and device were computed in the same way: a provider that divides
// models also has the hint of the precision.
func (r *Runtime) NetworkSettings(p Precision) map[string]string {
	out := r.sessionSettings(r.device)
	add := func(prefix string, s map[string]string) {
		for k, v := range s {
			if !strings.HasSuffix(k, "_path") {
				out[prefix+k] = v
			}
		}
	}
	switch r.device.Provider {
	case ProviderCUDA:
		add("cuda.", cudaSettings(r.device.Index, r.capture, p == FP16))
		out[noTF32] = tf32()
	case ProviderTensorRT:
		add("tensorrt.", tensorRTSettings(r.device.Index, ""))
		add("cuda.", cudaSettings(r.device.Index, false, p == FP16))
		out[noTF32] = tf32()
	case ProviderWebGPU:
		add("webgpu.", webGPUSettings(r.capture))
	case ProviderOpenVINO:
		settings := openVINOSettings(p)
		maps.DeleteFunc(settings, func(_, v string) bool { return v == "" })
		add("openvino.", settings)
		out[SettingOpenVINO] = r.openVINO
	}
	return out
}

// appendProvider adds the provider to a session's options, which always include the CPU.
func (r *Runtime) appendProvider(opts *ort.SessionOptions, t target, model []byte) error {
	d := t.device
	half := false
	if d.NVIDIA() {
		m, err := modelfile.ReadModel(model)
		if err != nil {
			return err
		}
		half = modelfile.HasHalf(m.Proto().Graph)
	}
	switch d.Provider {
	case ProviderCUDA:
		return appendCUDA(opts, cudaSettings(d.Index, r.capture, half))
	case ProviderTensorRT:
		cache, err := r.engineCache(model)
		if err != nil {
			return err
		}
		trt, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		defer trt.Destroy()
		if err := trt.Update(tensorRTSettings(d.Index, cache)); err != nil {
			return err
		}
		if err := opts.AppendExecutionProviderTensorRT(trt); err != nil {
			return err
		}
		// Nodes that TensorRT does not support run on CUDA.
		return appendCUDA(opts, cudaSettings(d.Index, false, half))
	case ProviderWebGPU:
		return opts.AppendExecutionProvider("WebGPU", webGPUSettings(r.capture))
	}
	return nil
}

func appendCUDA(opts *ort.SessionOptions, settings map[string]string) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	if err := cuda.Update(settings); err != nil {
		return err
	}
	return opts.AppendExecutionProviderCUDA(cuda)
}
