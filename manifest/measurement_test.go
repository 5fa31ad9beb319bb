package manifest

import (
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// TestUnusedMeasurementRange: a range that does not describe the measurement of an item fails the item, and the campaign if a task has no
// use for it.
func TestUnusedMeasurementRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, measurement, task, override, want string }{
		{"array", "/y/a.npy", "hdr", "", ""},
		{"address without a kind", "https://h/y", "hdr", "", ""},
		{"picture", "https://h/b.png?key=secret", "hdr", "", ""},
		{"simulated", "", "hdr", "", "dataset.measurement_range: it is for measurements, and the row has none; remove it"},
		{"moduli", "/y/a.npy", "moduli", "", "dataset.measurement_range: task moduli does not use it: its measurement is no picture with black and white, a .npy file has the values of A(x); remove it"},
		{"flag", "", "hdr", "--measurement-range", "--measurement-range: it is for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := testSpec()
			spec.Dataset.MeasurementRange = &item.ValueRange{0, 255}
			if c.override != "" {
				spec.Override("dataset.measurement_range", c.override)
			}
			e := NewExpander(spec, "prior", testResolve)
			e.Known = testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "moduli", NotPicture: true})
			row := Row{Name: "x", Image: "/x.png", Measurement: c.measurement, Overrides: Overrides{Task: c.task}}
			probe := testProbe()
			probe.MeasurementSHA256 = strings.Repeat("cd", 32)
			items, failed := e.Expand(row, probe, 0)
			if c.want == "" {
				if len(failed) > 0 || len(items) == 0 || items[0].MeasurementRange == nil {
					t.Errorf("items %+v, failed %+v", items, failed)
				}
				return
			}
			if len(items) > 0 || len(failed) == 0 || !strings.Contains(failed[0].Reason, "task "+c.task+", method ddiff: "+c.want) || strings.Contains(failed[0].Reason, "secret") {
				t.Errorf("%d items, failed %+v, want %q", len(items), failed, c.want)
			}
			spec.Dataset.MeasurementRange = nil
			if items, failed = e.Expand(row, probe, 0); len(failed) > 0 || len(items) == 0 {
				t.Errorf("without a range: %d items, failed %+v", len(items), failed)
			}
		})
	}
	spec := testSpec()
	spec.Dataset.MeasurementRange = &item.ValueRange{0, 255}
	v := fullCatalogue()
	if err := spec.Validate(v); err != nil && strings.Contains(err.Error(), "measurement_range") {
		t.Error(err)
	}
	v.Operators[0].NotPicture = true
	if err := spec.Validate(v); err == nil || !strings.Contains(err.Error(), "dataset.measurement_range: task super_resolution does not use it: its measurement is no picture with black and white, a .npy file has the values of A(x); remove it") {
		t.Errorf("error %v", err)
	}
}

// TestUnusedInputs: a mask or a kernel that a task does not use fails the task's items only, whether the task is built in or a file.
func TestUnusedInputs(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.Tasks = []item.Task{{Name: "hdr"}, {Name: "hole"}, {Name: "lens", Operator: "/o/lens.onnx"}, {Name: "plain", Operator: "/o/plain.onnx"}}
	e := NewExpander(spec, "prior", testResolve)
	e.Known = testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "hole", Input: "mask"}, operator.Definition{Name: "lens", Input: "kernel"}, operator.Definition{Name: "plain"})
	e.Known.Files = map[string]*operator.File{"/o/lens.onnx": {SHA256: strings.Repeat("12", 32)}, "/o/plain.onnx": {SHA256: strings.Repeat("34", 32)}}
	probe := testProbe()
	probe.MaskSHA256, probe.KernelSHA256 = strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, c := range []struct {
		overrides Overrides
		works     []string
		reasons   map[string]string
	}{
		{Overrides{}, []string{"hdr", "hole", "lens", "plain"}, nil},
		{Overrides{Mask: "/m.npy"}, []string{"hole"}, map[string]string{
			"hdr":   "task hdr does not use a mask, it uses neither mask nor kernel; remove the mask",
			"lens":  "task lens does not use a mask, it uses a kernel; remove the mask",
			"plain": "task plain does not use a mask, it uses neither mask nor kernel; remove the mask",
		}},
		{Overrides{Kernel: "/k.npy"}, []string{"lens"}, map[string]string{
			"hole":  "task hole does not use a kernel, it uses a mask; remove the kernel",
			"plain": "task plain does not use a kernel, it uses neither mask nor kernel; remove the kernel",
		}},
	} {
		items, failed := e.Expand(Row{Name: "x", Image: "/x.png", Overrides: c.overrides}, probe, 0)
		done := map[string]bool{}
		for _, it := range items {
			done[it.Task] = true
		}
		for _, task := range c.works {
			if !done[task] {
				t.Errorf("%+v: task %s has no items", c.overrides, task)
			}
		}
		if len(done) != len(c.works) {
			t.Errorf("%+v: items of the tasks %v, want %v", c.overrides, done, c.works)
		}
		for task, want := range c.reasons {
			found := false
			for _, r := range failed {
				found = found || r.Item.Task == task && strings.HasSuffix(r.Reason, want)
			}
			if !found {
				t.Errorf("%+v: no failure %q among %+v", c.overrides, want, failed)
			}
		}
	}
}
