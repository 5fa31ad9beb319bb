package onnxruntime_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
)

// An OpenVINO whose results are not those of the CPU provider is not used: openvino is refused, and auto computes on the CPU provider alone.
func TestOpenVINODisagrees(t *testing.T) {
	library := onnxtest.OpenVINOLibrary(t)
	for _, p := range onnxtest.OpenVINO(t).Precisions() {
		was := onnxruntime.SetOpenVINOTolerance(p, 0)
		const reason = " with the CPU provider: results differ by "
		_, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderOpenVINO, OpenVINO: library})
		if !errors.Is(err, onnxruntime.ErrProvider) || !strings.Contains(err.Error(), "in "+string(p)+reason) {
			t.Errorf("openvino in %s: %v", p, err)
		}
		auto, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderAuto, OpenVINO: library})
		must(t, err)
		alternative := auto.Alternative() // opens OpenVINO
		onnxruntime.SetOpenVINOTolerance(p, was)
		if alternative != nil || auto.Unusable() == nil || !strings.Contains(auto.Unusable().Error(), reason) {
			t.Errorf("auto in %s: alternative %v, reason %v", p, alternative, auto.Unusable())
		}
		must(t, auto.Close())
	}
}
