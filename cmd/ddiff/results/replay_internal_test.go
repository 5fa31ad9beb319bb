package results

import (
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/onnx/onnxruntime"
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
