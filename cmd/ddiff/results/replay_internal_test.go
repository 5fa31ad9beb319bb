package results

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/passport"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// The note of a replay tells apart the versions of OpenVINO, and results of ONNX Runtime's plugin, which have none.
func TestDescribe(t *testing.T) {
	t.Parallel()
	r := item.Runtime{Version: "1.2.3", Library: "1.30.0", Provider: onnxruntime.ProviderOpenVINO, Threads: 2}
	if got, want := describe(r), "ddiff 1.2.3, ONNX Runtime 1.30.0 on openvino, threads=2"; got != want {
		t.Errorf("the plugin: %q, want %q", got, want)
	}
	r.Options = map[string]string{onnxruntime.SettingOpenVINO: "2026.4.1"}
	if got, want := describe(r), "ddiff 1.2.3, ONNX Runtime 1.30.0 on openvino 2026.4.1, threads=2"; got != want {
		t.Errorf("OpenVINO: %q, want %q", got, want)
	}
}

// TestReencoded: the restored.png of an output is no other encoding of itself.
func TestReencoded(t *testing.T) {
	t.Parallel()
	p := &passport.Passport{Warnings: []item.Warning{{Code: photograph.WarnAlpha}}}
	for file, want := range map[string]bool{"a.png": true, "out/items/0/" + item.FileRestored: false} {
		if o := (output{File: file, passport: p}); o.reencoded() != want {
			t.Errorf("%s: %v, want %v", file, !want, want)
		}
	}
}

// TestEqual16: equal 8-bit samples may differ in 16 bits; a grey image equals itself in three channels.
func TestEqual16(t *testing.T) {
	t.Parallel()
	a, b := raster.New(1, 1, 2), raster.New(3, 1, 2)
	if !equal16(a, b) {
		t.Error("equal images differ")
	}
	b.Pix[4] = 1. / 32767
	if n, err := levels(a, b); err != nil || n != 0 || equal16(a, b) {
		t.Errorf("%d levels, %v; a step of 16 bits is not seen", n, err)
	}
}
