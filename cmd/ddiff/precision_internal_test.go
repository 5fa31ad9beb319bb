package main

import (
	"errors"
	"slices"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/onnx"
)

// testDevice is a CPU, a CPU beside OpenVINO, or OpenVINO alone.
type testDevice struct {
	provider   string
	all, whole []onnx.Precision
}

func (d testDevice) Provider() string               { return d.provider }
func (d testDevice) Precisions() []onnx.Precision   { return d.all }
func (d testDevice) Computes(p onnx.Precision) bool { return slices.Contains(d.all, p) }
func (d testDevice) Whole(p onnx.Precision) bool    { return slices.Contains(d.whole, p) }

func (d testDevice) AutoPrecision() onnx.Precision {
	if d.Computes(onnx.BF16) {
		return onnx.BF16
	}
	return onnx.FP32
}

// The precision auto is one that all methods of the campaign can use on the device. A fixed one that they cannot use is refused.
func TestFixPrecision(t *testing.T) {
	t.Parallel()
	full := []onnx.Precision{onnx.FP32, onnx.FP16}
	cpu := testDevice{"cpu", full, full}
	both := testDevice{"cpu", onnx.Precisions(), full}
	openvino := testDevice{"openvino", []onnx.Precision{onnx.FP32, onnx.BF16}, nil}
	for _, c := range []struct {
		device  testDevice
		given   manifest.Precision
		methods []string
		want    manifest.Precision
		why     string
		err     string
	}{
		{both, "", []string{"dps"}, "", "", ""},
		{cpu, "auto", []string{"dps"}, "float32", " on cpu", ""},
		{both, "auto", []string{"ddiff", "daps"}, "bfloat16", " on cpu", ""},
		{both, "auto", []string{"ddiff", "dps", "dcdp"}, "float32", ": method dps needs the gradient of the network, which is float32", ""},
		{both, "auto", []string{"dcdp"}, "float32", ": method dcdp evaluates the network in a loop, which is float32", ""},
		{both, "auto", []string{"psld"}, "float32", ": method psld needs the gradient of the network, which is float32", ""},
		{both, "float16", []string{"dps"}, "float16", "", ""},
		{both, "bfloat16", []string{"ddiff"}, "bfloat16", "", ""},
		{both, "bfloat16", []string{"ddiff", "dps"}, "bfloat16", "", "precision: method dps needs the gradient of the network, which cpu cannot do in bfloat16; leave the method out, or use float32"},
		{cpu, "bfloat16", []string{"dps"}, "bfloat16", "", "precision: cpu cannot compute the network in bfloat16; it computes in float32, float16: choose one of them, or another --device"},
		{openvino, "auto", []string{"dps"}, "auto", "", "precision: method dps needs the gradient of the network, which openvino cannot do in float32; leave the method out, or use --device cpu"},
	} {
		spec := &manifest.Spec{Precision: c.given, Methods: c.methods}
		why, err := fixPrecision(spec, c.device, nil)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if spec.Precision != c.want || why != c.why || text != c.err || errors.Is(err, onnx.ErrPrecision) != (c.err != "") {
			t.Errorf("%s for %v on %s: %q%s, error %q; want %q%s, error %q", c.given, c.methods, c.device.provider, spec.Precision, why, text, c.want, c.why, c.err)
		}
	}
}
