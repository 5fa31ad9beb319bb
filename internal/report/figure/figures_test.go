package figure

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/restore/item"
)

// The approaches to one problem show the same measurements, and no more traces are read than the limit.
func TestConvergenceSample(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	const items, limit = 40, 8
	for _, method := range []string{"ddiff", "other"} {
		for i := range items {
			r := reporttest.Result(t, "hdr", method, fmt.Sprint(i), 0, reporttest.Scored(20, 10, 0.5, 0))
			reporttest.Traced(t, store, &r, []float64{float64(i)}, nil)
			results = append(results, r)
		}
	}
	s, err := entry.Collect(reporttest.Stream(results), nil, selection.First, false)
	reporttest.Must(t, err)
	summary := aggregate.SummarizeEntries(s, nil, nil)
	w := &figureWriter{store: store, summary: summary, traces: limit}
	reporttest.Must(t, w.writeAll(t.Context()))
	if len(store.Reads) != 2*limit {
		t.Errorf("%d traces read, want %d", len(store.Reads), 2*limit)
	}
	figures := reporttest.ReadFigures(t, store)
	if a, b := figures["convergence_hdr"]["ddiff data_norm"], figures["convergence_hdr"]["other data_norm"]; len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("%q and %q are means over different measurements", a, b)
	}
	if !strings.Contains(string(store.Files[KeyCaptions]), "random sample of 8 measurements") {
		t.Errorf("the caption does not state the sample:\n%s", store.Files[KeyCaptions])
	}
}

func TestLongTraceIsThinned(t *testing.T) {
	t.Parallel()
	at := evenSteps(1000, maxCurveSteps)
	if len(at) != maxCurveSteps || at[0] != 0 || at[len(at)-1] != 999 || at[1] != 10 {
		t.Errorf("steps %v", at)
	}
	if got := evenSteps(3, maxCurveSteps); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("steps %v", got)
	}
}

// A trace may hold null, and curves may be infinite after an overflow.
func TestConvergenceOfUndefinedValues(t *testing.T) {
	t.Parallel()
	got := meanCurve([]*traceValues{
		{image: 1, steps: 2, curves: [][]float64{{math.Inf(1), 2}}},
		{image: 2, steps: 2, curves: [][]float64{{math.NaN(), 4}}},
		{image: 3, steps: 1, curves: [][]float64{{7}}},
	}, 0)
	if len(got) != 2 || statistic.Defined(got[0].Y) || got[0].N != 0 || got[1].Y != 3 || got[1].N != 2 {
		t.Errorf("%+v", got)
	}
}

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
		if c.Series[0].Values[i] != full["data_norm"][step-1] || float64(c.Timestep[i]) != full[item.CurveTimestep][step-1] {
			t.Fatalf("point %d is not step %d", i, step)
		}
	}
}

func TestThinReturnsUnknownCurves(t *testing.T) {
	t.Parallel()
	c := thin(item.Trace{"timestep": {9, 0}, "gamma": {1, 2}, "acceptance": {3, 4}, "data_norm": {5, 6}})
	got, err := json.Marshal(c)
	reporttest.Must(t, err)
	want := `{"step":[1,2],"t":[9,0],"series":[{"name":"acceptance","values":[3,4]},{"name":"data_norm","values":[5,6]}]}`
	if string(got) != want {
		t.Errorf("curves = %s, want %s", got, want)
	}
}

func TestNumbersAreValidJSON(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(Column{1, 0.12345678, 1e-9, 1234567, math.NaN(), math.Inf(1)})
	reporttest.Must(t, err)
	if got, want := string(out), `[1,0.123457,1e-09,1.23457e+06,null,null]`; got != want {
		t.Errorf("json = %s, want %s", got, want)
	}
}

// The front has the best PSNR for each time, over all lines.
func TestFront(t *testing.T) {
	t.Parallel()
	line := func(values ...float64) *sweepLine {
		l := &sweepLine{}
		for pair := range slices.Chunk(values, 2) {
			l.rows = append(l.rows, &aggregate.Row{Means: map[string]statistic.Estimate{"seconds": {N: 1, Mean: pair[0]}, "psnr": {N: 1, Mean: pair[1]}}})
		}
		return l
	}
	axis := sweepAxis{name: "seconds", value: func(r *aggregate.Row) float64 { return r.Means["seconds"].Mean }}
	got := ""
	for _, p := range front([]*sweepLine{line(5, 30, 1, 20, 2, 19), line(3, 25, 5, 31, 1, 20, 4, 25)}, axis).Points {
		got += fmt.Sprintf("%g:%g ", p.X, p.Y)
	}
	if want := "1:20 3:25 5:31 "; got != want {
		t.Errorf("the front is %s, want %s", got, want)
	}
}
