package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// autoSpec is a campaign of two tasks with the noise level auto, one with a number, and two runs.
func autoSpec(t *testing.T) *Spec {
	t.Helper()
	s, err := Parse("c.yaml", []byte("dataset: {path: list.csv}\nsigma: auto\nruns: 2\ntasks: [hdr, {name: denoise, sigma: 0.1}, {name: super_resolution, sigma: auto}]\n"), "/data")
	must(t, err)
	return s
}

// TestSigmaAuto: auto is read from campaigns, lists and flags, and survives the JSON of a campaign.
func TestSigmaAuto(t *testing.T) {
	t.Parallel()
	s := autoSpec(t)
	data, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(data), `"sigma":"auto"`) {
		t.Fatalf("%s, %v", data, err)
	}
	var back Spec
	if err := json.Unmarshal(data, &back); err != nil || back.Sigma != item.SigmaAuto || *back.Tasks[1].Sigma != 0.1 || *back.Tasks[2].Sigma != item.SigmaAuto {
		t.Errorf("JSON becomes %v, %v", back.Sigma, err)
	}
	if again, err := Parse("c.json", data, "/"); err != nil || again.ID("") != s.ID("") {
		t.Errorf("the JSON form is no campaign file: %v", err)
	}
	swept, err := Parse("c.yaml", []byte("dataset: {path: x}\nsigma: [auto, 0.05]\ntasks: [hdr]\n"), "/")
	if err != nil || len(swept.Tasks) != 2 || swept.Tasks[0].Sigma.String() != "auto" || swept.Tasks[1].Sigma.String() != "0.05" {
		t.Errorf("a list of levels: %+v, %v", swept, err)
	}
	for text, want := range map[string]item.Sigma{"auto": item.SigmaAuto, "0.05": 0.05, "1e-3": 0.001, "-1": -1} {
		if got, err := ParseSigma(text); err != nil || got != want {
			t.Errorf("%q becomes %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Auto", "much", "NaN", "inf"} {
		if got, err := ParseSigma(text); err == nil {
			t.Errorf("%q becomes %v", text, got)
		}
	}
	if _, err := Parse("c.yaml", []byte("dataset: {path: x}\nsigma: -1\ntasks: [hdr]\n"), "/"); err == nil || !strings.Contains(err.Error(), "c.yaml:2: sigma: -1 is out of range") {
		t.Errorf("a negative level: %v", err)
	}
	for text, ok := range map[string]bool{`"auto"`: true, `"0.1"`: false, "0.1": true} {
		fields, _, err := parseObject(`{"image": "a.png", "sigma": `+text+`}`, nil)
		if (err == nil) != ok {
			t.Errorf("a line with sigma %s: %v, %v", text, fields, err)
		}
	}
}

// TestExpandEstimates: items of a task with auto have the estimate and the mark, and the identity of items with this number.
func TestExpandEstimates(t *testing.T) {
	t.Parallel()
	s := autoSpec(t)
	resolve := func(task item.Task, _ bool, _, _ int) (json.RawMessage, map[string]float64, error) {
		raw, err := json.Marshal(map[string]float64{"noise": float64(*task.Sigma)})
		return raw, task.Params, err
	}
	digest := strings.Repeat("a", 64)
	row := Row{Name: "x", Measurement: "/x.png"}
	if got := EstimatedTasks(row, s); len(got) != 2 || got[0].Name != "hdr" || got[1].Name != "super_resolution" {
		t.Fatalf("estimated tasks %+v", got)
	}
	probe := Probe{MeasurementSHA256: digest, Width: 8, Height: 8, Estimates: []Estimate{{Sigma: 0.0213}, {Sigma: 0.3}}}
	items, failed := NewExpander(s, "prior", resolve).Expand(row, probe, 0)
	if len(items) != 6 || len(failed) != 0 {
		t.Fatalf("%d items, failed %+v", len(items), failed)
	}
	for i, it := range items {
		want := []float64{0.0213, 0.1, 0.3}[i/2]
		if it.Sigma != want || it.SigmaEstimated != (want != 0.1) || string(it.Solver) != `{"noise":`+item.Sigma(want).String()+`}` {
			t.Errorf("item %d of task %s has sigma %g, %v, %s", i, it.Task, it.Sigma, it.SigmaEstimated, it.Solver)
		}
	}
	given := Row{Name: "x", Measurement: "/x.png", Overrides: Overrides{Sigma: ptr(item.Sigma(0.0213))}}
	same, _ := NewExpander(s, "prior", resolve).Expand(given, probe, 0)
	if same[0].ID != items[0].ID || same[0].SigmaEstimated {
		t.Error("the identity tells an estimate from an equal number")
	}

	// Failures: one task has no estimate, an estimate is out of range, and a row has no measurement.
	cause := errors.New("too few patches")
	probe.Estimates = []Estimate{{Err: cause}, {Sigma: 1.5}}
	items, failed = NewExpander(s, "prior", resolve).Expand(row, probe, 0)
	if len(items) != 2 || len(failed) != 4 || failed[0].Reason != "task hdr, method ddiff: sigma auto: too few patches" ||
		failed[0].Item.Sigma != 0 || !failed[0].Item.SigmaEstimated || !strings.HasSuffix(failed[2].Reason, "1.5 is out of range, want 0 to 1 (in units of y); give sigma as a number") {
		t.Errorf("%d items, failed %+v", len(items), failed)
	}
	items, failed = NewExpander(s, "prior", resolve).Expand(Row{Name: "x", Image: "/x.png"}, Probe{ImageSHA256: digest, Width: 8, Height: 8}, 0)
	if len(items) != 2 || len(failed) != 4 || !strings.HasSuffix(failed[0].Reason, errSimulated.Error()) {
		t.Errorf("without a measurement: %d items, failed %+v", len(items), failed)
	}
	if _, failed = NewExpander(s, "prior", resolve).Expand(row, Probe{MeasurementSHA256: digest, Width: 8, Height: 8}, 0); len(failed) != 4 {
		t.Errorf("without estimates: failed %+v", failed)
	}
}

// TestValidateAuto: a task whose noise cannot be estimated, and a campaign that simulates one image, are refused when they are read.
func TestValidateAuto(t *testing.T) {
	t.Parallel()
	v := testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "phase", NotPicture: true})
	for text, want := range map[string]string{
		"dataset: {path: l.csv}\nsigma: auto\ntasks: [hdr]\n":                             "",
		"dataset: {path: l.csv}\nsigma: auto\ntasks: [{name: phase, sigma: 0.1}]\n":       "",
		"dataset: {path: l.csv}\nsigma: auto\ntasks: [hdr, phase]\n":                      "c.yaml:2: sigma: auto does not suit task phase: its measurement is no picture; give a number",
		"dataset: {path: l.csv}\ntasks: [hdr, {name: phase, sigma: auto}]\n":              "tasks[1].sigma: auto does not suit task phase: its measurement is no picture; give a number",
		"dataset: {path: photos}\nsigma: auto\ntasks: [hdr]\n":                            "c.yaml:2: sigma: sigma auto needs a stored measurement; a simulated one needs a number",
		"dataset: {path: '{photos,x.png}'}\nsigma: auto\ntasks: [hdr]\n":                  "c.yaml:2: sigma: sigma auto needs a stored measurement; a simulated one needs a number",
		"dataset: {path: photos/*.png}\nsigma: auto\ntasks: [hdr]\n":                      "c.yaml:2: sigma: sigma auto needs a stored measurement; a simulated one needs a number",
		"dataset: {path: photos, measurements: true}\nsigma: auto\ntasks: [hdr]\n":        "",
		"dataset: {path: '{photos,l.csv}'}\nsigma: auto\ntasks: [hdr]\n":                  "",
		"dataset: {path: 's-{0..3}.tar'}\nsigma: auto\ntasks: [hdr]\n":                    "",
		"dataset: {path: 's3://bucket/photos'}\nsigma: auto\ntasks: [hdr]\n":              "",
		"dataset: {path: x.png}\ntasks: [{name: hdr, sigma: auto}]\n":                     "tasks[0].sigma: sigma auto needs a stored measurement; a simulated one needs a number",
		"dataset: {path: x.png, measurements: true}\ntasks: [{name: hdr, sigma: auto}]\n": "",
		"dataset: {path: x.png, measurements: true}\nsigma: -0.5\ntasks: [hdr]\n":         "sigma: -0.5 is out of range, want 0 to 1 (in units of y)",
	} {
		_, err := validated(text, v)
		checkError(t, text, err, want)
	}
}
