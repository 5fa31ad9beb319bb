package onnxruntime_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

func TestWebGPUOpens(t *testing.T) {
	rt := onnxtest.WebGPU(t)
	if rt.Provider() != onnxruntime.ProviderWebGPU || rt.Device() != "webgpu:0" || !rt.GPU() || rt.Version() == "" {
		t.Errorf("provider %q, device %q, GPU %v, version %q", rt.Provider(), rt.Device(), rt.GPU(), rt.Version())
	}
	if s := rt.NetworkSettings(""); s["session.disable_cpu_ep_fallback"] != "1" || s["webgpu.enableInt64"] != "1" {
		t.Errorf("settings %v", s)
	}
	// The CPU runtime is unchanged.
	if cpu := onnxtest.Runtime(t); cpu.Provider() != onnxruntime.ProviderCPU || cpu.Device() != "" || cpu.GPU() {
		t.Errorf("provider %q, device %q", cpu.Provider(), cpu.Device())
	}
}

// WebGPU has one device.
func TestWebGPUIndex(t *testing.T) {
	onnxtest.WebGPU(t)
	if _, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderWebGPU, Device: 1}); err == nil {
		t.Error("device 1 was opened")
	}
}

// looped doubles x three times in a Loop, which WebGPU does not support.
func looped() (g *onnx.Graph, x, y onnx.Value) {
	g = onnx.NewGraph(onnx.DefaultOpset)
	x = g.Input("x", onnx.Float, 2)
	final, _ := g.Loop(g.Ints(3), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		return []onnx.Value{b.Add(s[0], s[0])}, nil
	})
	g.Output("y", final[0])
	return g, x, onnx.Value{Name: "y", DType: onnx.Float, Dims: []int{2}}
}

func TestGuard(t *testing.T) {
	rt := onnxtest.WebGPU(t)
	g, _, _ := looped()
	model, err := g.Marshal("looped")
	must(t, err)
	_, err = rt.NewSession(model, []string{"x"}, []string{"y"})
	if !errors.Is(err, onnxruntime.ErrFallback) || !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Fatalf("error %v, want ErrFallback", err)
	}
	for _, want := range []string{"webgpu does not support", "use --device cpu"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %v", err)
	}
}

// A tensor that is too large for any device is ErrMemory; the runtime stays usable.
func TestWebGPUMemory(t *testing.T) {
	rt := onnxtest.WebGPU(t)
	if _, err := expand(t, rt, 1<<28); !errors.Is(err, onnxruntime.ErrMemory) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want ErrMemory in one line", err)
	}
	if got, err := expand(t, rt, 1<<10); err != nil || got != 4<<10 {
		t.Errorf("afterwards: sum %g, error %v", got, err)
	}
}

// TestSerialSessionOfGPU: a serial session computes on the CPU, also a graph that the GPU does not support.
func TestSerialSessionOfGPU(t *testing.T) {
	rt := onnxtest.WebGPU(t)
	g, x, y := looped()
	model, err := g.Marshal("looped")
	must(t, err)
	s, err := rt.NewSerialSession(model, []string{"x"}, []string{"y"})
	must(t, err)
	tensors, err := onnxruntime.NewTensors(x, y)
	must(t, err)
	defer onnxruntime.CloseTensors(tensors)
	copy(tensors[0].F32, []float32{1, -3})
	up, down := rt.Traffic()
	must(t, s.Run(t.Context(), tensors[:1], tensors[1:]))
	if got := tensors[1].F32; got[0] != 8 || got[1] != -24 {
		t.Errorf("the outputs are %v", got)
	}
	if nowUp, nowDown := rt.Traffic(); nowUp != up || nowDown != down {
		t.Errorf("%d bytes went to the GPU, %d came back", nowUp-up, nowDown-down)
	}
	must(t, s.Close())
}
