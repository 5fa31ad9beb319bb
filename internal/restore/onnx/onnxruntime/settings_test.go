package onnxruntime

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseDevices(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][]Device{
		"auto": {{ProviderAuto, 0}}, "cpu,cpu": {{ProviderCPU, 0}, {ProviderCPU, 0}}, "webgpu": {{ProviderWebGPU, 0}},
		"cuda": {{ProviderCUDA, 0}, {ProviderCUDA, 1}, {ProviderCUDA, 2}}, "cuda:0": {{ProviderCUDA, 0}}, "tensorrt:2,tensorrt:0": {{ProviderTensorRT, 2}, {ProviderTensorRT, 0}},
	} {
		if got, err := parseDevices(s, func() int { return 3 }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", s, got, err, want)
		}
	}
	if got, err := parseDevices("cuda", func() int { return 0 }); err != nil || !slices.Equal(got, []Device{{ProviderCUDA, 0}}) {
		t.Errorf("without a GPU: %v, %v", got, err)
	}
	for _, s := range []string{"", "cpu,", "cuda:0,cpu", "auto,auto", "cuda:0, cuda:1"} {
		if got, err := parseDevices(s, func() int { return 3 }); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestParseDevice(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Device{
		"auto": {ProviderAuto, 0}, "cpu": {ProviderCPU, 0}, "cuda": {ProviderCUDA, 0}, "cuda:3": {ProviderCUDA, 3},
		"tensorrt:1": {ProviderTensorRT, 1}, "openvino": {ProviderOpenVINO, 0}, "webgpu": {ProviderWebGPU, 0}, "webgpu:0": {ProviderWebGPU, 0},
	} {
		if got, err := ParseDevice(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "gpu", "cpu:0", "openvino:0", "auto:1", "cuda:", "cuda:-1", "cuda:x", "CUDA", "cuda:1:2"} {
		if _, err := ParseDevice(s); err == nil || !strings.Contains(err.Error(), "none of auto, cpu, cuda[:N]") {
			t.Errorf("%s: error %v", s, err)
		}
	}
}

// TestSettings compares the settings of each provider.
func TestSettings(t *testing.T) {
	t.Parallel()
	session := map[string]string{"session.dynamic_block_base": "4", "session.set_denormal_as_zero": "0"}
	guarded := map[string]string{"session.disable_cpu_ep_fallback": "1"}
	cuda := map[string]string{
		"cuda.device_id": "2", "cuda.arena_extend_strategy": "kSameAsRequested", "cuda.cudnn_conv_algo_search": "HEURISTIC",
		"cuda.cudnn_conv_use_max_workspace": "1", "cuda.do_copy_in_default_stream": "1", "cuda.enable_cuda_graph": "0", "cuda.use_tf32": "0", "cuda.prefer_nhwc": "0",
		"NVIDIA_TF32_OVERRIDE": "0",
	}
	trt := map[string]string{
		"tensorrt.device_id": "2", "tensorrt.trt_fp16_enable": "0", "tensorrt.trt_engine_cache_enable": "1",
		"tensorrt.trt_timing_cache_enable": "1",
	}
	openvino := map[string]string{"openvino.PERFORMANCE_HINT": "LATENCY", "openvino.ENABLE_CPU_PINNING": "NO", "openvino.version": "2026.4.1", "session.intra_op.allow_spinning": "0"}
	webgpu := map[string]string{"webgpu.deviceId": "0", "webgpu.enableGraphCapture": "0", "webgpu.enableInt64": "1"}
	for name, c := range map[string]struct {
		device Device
		want   []map[string]string
	}{
		"cpu":      {Device{ProviderCPU, 0}, []map[string]string{session}},
		"cuda":     {Device{ProviderCUDA, 2}, []map[string]string{session, guarded, cuda}},
		"tensorrt": {Device{ProviderTensorRT, 2}, []map[string]string{session, guarded, cuda, trt}},
		"openvino": {Device{ProviderOpenVINO, 0}, []map[string]string{session, openvino}},
		"webgpu":   {Device{ProviderWebGPU, 0}, []map[string]string{session, guarded, webgpu}},
	} {
		want := map[string]string{}
		for _, m := range c.want {
			maps.Copy(want, m)
		}
		r := &Runtime{device: c.device, openVINO: "2026.4.1"}
		if got := r.NetworkSettings(""); !maps.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
		if r.Divides() {
			want["openvino.INFERENCE_PRECISION_HINT"] = "bf16"
		}
		if got := r.NetworkSettings(BF16); !maps.Equal(got, want) {
			t.Errorf("%s in bfloat16:\n got %v\nwant %v", name, got, want)
		}
		if got := r.NetworkSettings(FP16)["cuda.use_tf32"]; c.device.NVIDIA() && got != "1" {
			t.Errorf("%s in float16: use_tf32 is %q, which leaves out the tensor cores", name, got)
		}
	}
}

func TestEngineCache(t *testing.T) {
	root := t.TempDir()
	for i, text := range []string{"Model: \t\t NVIDIA H200\nIRQ: 12\n", "Model:  NVIDIA A100\n"} {
		dir := filepath.Join(root, "0000:0"+string(rune('1'+i))+":00.0")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "information"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gpus := nvidiaGPUs(root)
	if !slices.Equal(gpus, []string{"NVIDIA H200", "NVIDIA A100"}) {
		t.Errorf("GPUs %q", gpus)
	}
	d := Device{ProviderTensorRT, 0}
	keys := []string{
		engineKey([]byte("m"), gpus, "1.29.0", d),
		engineKey([]byte("n"), gpus, "1.29.0", d),
		engineKey([]byte("m"), gpus[1:], "1.29.0", d),
		engineKey([]byte("m"), gpus, "1.30.0", d),
		engineKey([]byte("m"), gpus, "1.29.0", Device{ProviderTensorRT, 1}),
	}
	for i, k := range keys {
		if slices.Index(keys, k) != i {
			t.Errorf("engine key %d is not unique", i)
		}
	}
	if again := engineKey([]byte("m"), gpus, "1.29.0", d); again != keys[0] {
		t.Error("equal engines have different keys")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	r := &Runtime{version: "1.29.0", device: d}
	dir, err := r.engineCache([]byte("m"))
	if info, e := os.Stat(dir); err != nil || e != nil || !info.IsDir() {
		t.Errorf("no directory %s: %v %v", dir, err, e)
	}
	// Compiled engines have code.
	if err := os.Chmod(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := r.engineCache([]byte("m")); err == nil || !strings.Contains(err.Error(), "another user may change") {
		t.Errorf("a cache of others: %v", err)
	}
}
