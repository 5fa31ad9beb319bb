package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// photonsCatalogue has two tasks whose measurement is a picture, and one whose measurement is none.
func photonsCatalogue() Catalogue {
	return testCatalogue(operator.Definition{Name: "hdr"}, operator.Definition{Name: "denoise"}, operator.Definition{Name: "phase", NotPicture: true})
}

// TestPhotonsFields: photons of campaigns and tasks are read, survive JSON, may have a list, and are refused with the field and the remedy.
func TestPhotonsFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]float64{
		"tasks: [hdr, denoise]\n":                                               {0, 0},
		"photons: 30\ntasks: [hdr, denoise]\n":                                  {30, 30},
		"photons: 30\ntasks: [hdr, {name: denoise, photons: 1e9}]\n":            {30, 1e9},
		"tasks: [phase, {name: denoise, photons: 0.01}]\n":                      {0, 0.01},
		"photons: [10, 100]\ntasks: [hdr, {name: denoise, photons: 5}]\n":       {10, 100, 5},
		"tasks: [{name: hdr, photons: [10, 20], sigma: [0, 0.1]}]\n":            {10, 20, 10, 20},
		"photons: [7]\ntasks: [{name: hdr, params: {}}, {name: hdr, steps: 3}]": {7, 7},
	} {
		s, err := validated("dataset: {path: x.csv}\n"+text, photonsCatalogue())
		if err != nil || len(s.Tasks) != len(want) {
			t.Errorf("%s: %+v, %v", text, s, err)
			continue
		}
		data, err := json.Marshal(s)
		var back Spec
		if err != nil || json.Unmarshal(data, &back) != nil {
			t.Fatalf("%s, %v", data, err)
		}
		for i, n := range want {
			for _, of := range []*Spec{s, &back} {
				if p := of.Effective(of.Tasks[i]).Photons; (p == nil) != (n == 0) || p != nil && *p != n {
					t.Errorf("%s: task %d has %v photons, want %g", text, i, p, n)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"photons: 0\ntasks: [hdr]\n":                             "photons: 0 is out of range, want 0.01 to 1e+09 photons of a white pixel; leave it out",
		"photons: -1\ntasks: [hdr]\n":                            "photons: -1 is out of range",
		"photons: .nan\ntasks: [hdr]\n":                          "photons",
		"photons: 2e9\ntasks: [hdr]\n":                           "photons: 2e+09 is out of range",
		"photons: many\ntasks: [hdr]\n":                          "photons",
		"tasks: [{name: hdr, photons: 0.001}]\n":                 "tasks[0].photons: 0.001 is out of range",
		"photons: 9\ntasks: [hdr, phase]\n":                      "photons: the measurement of task phase is no picture",
		"tasks: [{name: phase, photons: 9}]\n":                   "tasks[0].photons: the measurement of task phase is no picture",
		"photons: 9\ntasks: [{operator: a.onnx}]\n":              "photons: the measurement of task a is no picture",
		"photons: 9\nsigma: auto\ntasks: [hdr]\n":                "photons: has photons and sigma auto, which estimates noise without photons; give sigma as a number",
		"photons: 9\ntasks: [denoise, {name: hdr, sigma: auto}]": "tasks[1].sigma: has photons and sigma auto",
	} {
		_, err := validated("dataset: {path: x.csv}\n"+text, photonsCatalogue())
		checkError(t, text, err, want)
	}
}

// TestPhotonsOfRows: a row of a list replaces the campaign's photons; rows that cannot have them fail, each with one line.
func TestPhotonsOfRows(t *testing.T) {
	t.Parallel()
	resolve := func(task item.Task, _ bool, _, _ int) (json.RawMessage, map[string]float64, error) {
		return json.RawMessage(`{}`), task.Params, nil
	}
	digest := strings.Repeat("a", 64)
	probe := Probe{ImageSHA256: digest, MeasurementSHA256: digest, Width: 8, Height: 8, Estimates: []Estimate{{Sigma: 0.1}, {Sigma: 0.1}}}
	s := parsed(t, "dataset: {path: l.csv}\nphotons: 30\ntasks: [hdr, {name: denoise, photons: 5}]\n")
	expand := func(row Row) ([]item.Item, []item.Result) {
		e := NewExpander(s, "prior", resolve)
		e.Known = photonsCatalogue()
		return e.Expand(row, probe, 0)
	}
	for name, c := range map[string]struct {
		row  Overrides
		want []float64
	}{
		"campaign": {Overrides{}, []float64{30, 5}},
		"row":      {Overrides{Photons: ptr(7.5)}, []float64{7.5, 7.5}},
		"task":     {Overrides{Task: "denoise"}, []float64{5}},
	} {
		items, failed := expand(Row{Name: "x", Image: "/x.png", Overrides: c.row})
		if len(failed) != 0 || len(items) != len(c.want) {
			t.Errorf("%s: %d items, failed %+v", name, len(items), failed)
			continue
		}
		for i, it := range items {
			if it.Photons != c.want[i] || it.CheckID() != nil {
				t.Errorf("%s: item %d has %g photons, want %g, %v", name, i, it.Photons, c.want[i], it.CheckID())
			}
		}
	}
	for want, row := range map[string]Overrides{
		"the measurement of task phase is no picture": {Task: "phase", Photons: ptr(7.0)},
		"has photons and sigma auto":                  {Sigma: ptr(item.SigmaAuto)},
	} {
		items, failed := expand(Row{Name: "x", Image: "/x.png", Measurement: "/y.png", Overrides: row})
		if len(items) != 0 || len(failed) == 0 || !strings.Contains(failed[0].Reason, want) || strings.Contains(failed[0].Reason, "\n") {
			t.Errorf("%s: %d items, failed %+v", want, len(items), failed)
		}
	}
	for text, want := range map[string]string{
		"7.5": "", "1e9": "", "0": "0 is out of range, want 0.01", "-3": "-3 is out of range", "many": "many", "NaN": "NaN", "auto": "auto",
	} {
		r := rowMaker{}
		err := r.set(Field{Column: "photons", Text: text})
		checkError(t, "column photons "+text, err, want)
		if err == nil && r.Overrides.Photons == nil {
			t.Errorf("column photons %q has no value", text)
		}
	}
}
