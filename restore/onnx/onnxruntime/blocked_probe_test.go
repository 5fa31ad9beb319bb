package onnxruntime_test

import (
	"testing"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// The probe notices a layout that is not that of the library. Without the layout, networks are as in their files.
func TestBlock(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	block := rt.Block()
	if block == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	if block != 8 && block != 16 {
		t.Errorf("blocks of %d channels", block)
	}
	if err := rt.ProbeBlocked(block); err != nil {
		t.Error(err)
	}
	if err := rt.ProbeBlocked(2 * block); err == nil { // whole blocks of the library, in another order
		t.Errorf("blocks of %d channels instead of %d: no error", 2*block, block)
	}
	plain, err := rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Options: onnxruntime.Options{onnxruntime.OptionLayout: onnxruntime.LayoutNCHW}})
	must(t, err)
	defer plain.Close()
	if b := plain.Block(); b != 0 || plain.Settings()["cpu.layout"] != "nchw" {
		t.Errorf("with layout nchw: blocks of %d channels, settings %v", b, plain.Settings())
	}
}
