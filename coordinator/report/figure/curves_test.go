package figure

import (
	"encoding/json"
	"math"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

func TestThinIncludesFirstAndLastStep(t *testing.T) {
	t.Parallel()
	full := reporttest.Trace(1000, 1)
	c := thin(full)
	if len(c.Step) != maxCurvePoints || c.Step[0] != 1 || c.Step[maxCurvePoints-1] != 1000 {
		t.Errorf("steps %d..%d, %d points", c.Step[0], c.Step[len(c.Step)-1], len(c.Step))
	}
	for i, step := range c.Step {
		if i > 0 && (step <= c.Step[i-1] || step-c.Step[i-1] > 4) {
			t.Fatalf("steps %d and %d follow each other", c.Step[i-1], step)
		}
		if c.Series[0].Values[i] != full.Curve("data_norm")[step-1] || c.Timestep[i] != full.Timestep[step-1] {
			t.Fatalf("point %d is not step %d", i, step)
		}
	}
}

func TestThinReturnsUnknownCurves(t *testing.T) {
	t.Parallel()
	c := thin(&manifest.Trace{Timestep: []int{9, 0}, Curves: []manifest.Curve{
		{Name: "gamma", Values: []float64{1, 2}}, {Name: "acceptance", Values: []float64{3, 4}}, {Name: "data_norm", Values: []float64{5, 6}},
	}})
	got, err := json.Marshal(c)
	reporttest.Must(t, err)
	want := `{"step":[1,2],"t":[9,0],"series":[{"name":"acceptance","values":[3,4]},{"name":"data_norm","values":[5,6]}]}`
	if string(got) != want {
		t.Errorf("curves = %s, want %s", got, want)
	}
}

func TestNumbersAreValidJSON(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(Column{1, 0.123456, 1e-9, 123456, math.NaN(), math.Inf(1)})
	reporttest.Must(t, err)
	if got, want := string(out), `[1,0.12346,1e-09,1.2346e+05,null,null]`; got != want {
		t.Errorf("json = %s, want %s", got, want)
	}
}
