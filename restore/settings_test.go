package restore_test

import (
	"maps"
	"testing"

	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// The layout of a result is that in which its network was computed: a gradient through the network has the library's own, and so has a
// network that runs as it is in its file.
func TestSettingsOfLayout(t *testing.T) {
	t.Parallel()
	rt, e := onnxtest.Runtime(t), engine(t)
	plain := maps.Clone(rt.Settings())
	plain[onnxruntime.SettingLayout] = onnxruntime.LayoutNCHW
	settings := func(name string) map[string]string {
		s := resolve(t, method.Request{Method: name, Preset: "natural", Task: "super_resolution"})
		return e.Settings(restore.Plan{Task: "super_resolution", Solver: s})
	}
	for name, want := range map[string]map[string]string{
		"ddiff": rt.Settings(), "diffpir": rt.Settings(), "dps": plain, "dmplug": plain,
	} {
		if got := settings(name); !maps.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
	}
	if got := e.Settings(restore.Plan{Precision: onnxruntime.FP16}); !maps.Equal(got, plain) {
		t.Errorf("in float16:\n got %v\nwant %v", got, plain)
	}
}
