package onnxruntime_test

import (
	"errors"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

func TestOneRuntimePerProcess(t *testing.T) {
	rt := onnxtest.Runtime(t)
	if rt.Provider() != onnxruntime.ProviderCPU || rt.Version() == "" {
		t.Errorf("provider %q, version %q", rt.Provider(), rt.Version())
	}
	if _, err := onnxruntime.Open(onnxruntime.Config{Library: "whatever"}); !errors.Is(err, onnxruntime.ErrAlreadyOpen) {
		t.Errorf("error %v, want ErrAlreadyOpen", err)
	}
}

func TestBadModelIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := onnxtest.Runtime(t).NewSession([]byte("no model"), []string{"x"}, []string{"y"}); !errors.Is(err, onnxruntime.ErrRuntime) {
		t.Errorf("error %v, want ErrRuntime", err)
	}
}

// Without a GPU, auto is the CPU and an explicit GPU is an error; with a GPU, both use it.
func TestChosenProvider(t *testing.T) {
	rt := onnxtest.Runtime(t)
	auto, err := rt.With(onnxruntime.Config{})
	must(t, err)
	defer auto.Close()
	cuda, err := rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCUDA})
	if err != nil {
		if !errors.Is(err, onnxruntime.ErrProvider) || auto.Provider() != onnxruntime.ProviderCPU || auto.GPU() {
			t.Errorf("error %v, auto is %s", err, auto.Provider())
		}
		return
	}
	defer cuda.Close()
	if auto.Provider() != onnxruntime.ProviderCUDA || auto.Device() != "cuda:0" {
		t.Errorf("auto is %s on %q", auto.Provider(), auto.Device())
	}
}

// A closed tensor is an error instead of a crash in the library.
func TestClosedTensor(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1)
	g.Output("y", g.Neg(x))
	model, err := g.Marshal("m")
	must(t, err)
	s, err := onnxtest.Runtime(t).NewSession(model, []string{"x"}, []string{"y"})
	must(t, err)
	defer s.Close()
	tensors, err := onnxruntime.NewTensors(x, x)
	must(t, err)
	defer onnxruntime.CloseTensors(tensors)
	if err := s.Run(t.Context(), tensors[:1], []*onnxruntime.Tensor{nil}); err == nil {
		t.Error("a nil output was accepted")
	}
	tensors[1].Close()
	if err := s.Run(t.Context(), tensors[:1], tensors[1:]); err == nil {
		t.Error("a closed output was accepted")
	}
}
