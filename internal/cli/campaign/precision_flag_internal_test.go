package campaign

import (
	"errors"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// testDevice is a CPU, a CPU beside OpenVINO, or OpenVINO alone.
type testDevice struct {
	provider   string
	all, whole []onnxruntime.Precision
}

func (d testDevice) Provider() string                      { return d.provider }
func (d testDevice) Precisions() []onnxruntime.Precision   { return d.all }
func (d testDevice) Computes(p onnxruntime.Precision) bool { return slices.Contains(d.all, p) }
func (d testDevice) Whole(p onnxruntime.Precision) bool    { return slices.Contains(d.whole, p) }

func (d testDevice) AutoPrecision() onnxruntime.Precision {
	if d.Computes(onnxruntime.BF16) {
		return onnxruntime.BF16
	}
	return onnxruntime.FP32
}

// The precision auto is one that all methods of the campaign can use on the device. A fixed one that they cannot use is refused.
func TestFixPrecision(t *testing.T) {
	t.Parallel()
	full := []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.FP16}
	cpu := testDevice{"cpu", full, full}
	both := testDevice{"cpu", parameter.Precisions(), full}
	openvino := testDevice{"openvino", []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.BF16}, nil}
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
		why, err := FixPrecision(spec, c.device, manifest.Catalogue{})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if spec.Precision != c.want || why != c.why || text != c.err || errors.Is(err, onnxruntime.ErrPrecision) != (c.err != "") {
			t.Errorf("%s for %v on %s: %q%s, error %q; want %q%s, error %q", c.given, c.methods, c.device.provider, spec.Precision, why, text, c.want, c.why, c.err)
		}
	}
}

// With the precision auto, phase retrieval stays in float32. A fixed precision is that of all tasks.
func TestFixPrecisionOfTasks(t *testing.T) {
	t.Parallel()
	full := []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.FP16}
	cpu := testDevice{"cpu", full, full}
	openvino := testDevice{"openvino", []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.BF16}, nil}
	const grows = " for phase_retrieval, where rounding errors grow from step to step"
	for _, c := range []struct {
		device testDevice
		given  manifest.Precision
		tasks  []string
		want   manifest.Precision
		phase  manifest.Precision
		why    string
	}{
		{openvino, "auto", []string{"hdr"}, "bfloat16", "float32", " on openvino"},
		{openvino, "auto", []string{"hdr", "phase_retrieval"}, "bfloat16", "float32", " on openvino, and float32" + grows},
		{openvino, "auto", []string{"phase_retrieval"}, "float32", "float32", ": the network stays in float32" + grows},
		{openvino, "bfloat16", []string{"hdr", "phase_retrieval"}, "bfloat16", "bfloat16", ""},
		{openvino, "", []string{"phase_retrieval"}, "", "", ""},
		{cpu, "auto", []string{"hdr", "phase_retrieval"}, "float32", "float32", " on cpu"},
	} {
		spec := &manifest.Spec{Precision: c.given, Methods: []string{"ddiff"}}
		for _, name := range c.tasks {
			spec.Tasks = append(spec.Tasks, item.Task{Name: name})
		}
		why, err := FixPrecision(spec, c.device, manifest.Catalogue{})
		if phase := spec.PrecisionOf("phase_retrieval"); err != nil || why != c.why || spec.Precision != c.want || phase != c.phase ||
			spec.PrecisionOf("hdr") != c.want {
			t.Errorf("%s for %v on %s: %q, %q for phase_retrieval,%s (%v)", c.given, c.tasks, c.device.provider, spec.Precision, phase, why, err)
		}
	}
}
