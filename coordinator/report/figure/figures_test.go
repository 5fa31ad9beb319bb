package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
)

// The approaches to one problem show the same measurements, and no more traces are read than the limit.
func TestConvergenceSample(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []manifest.Result
	const items, limit = 40, 8
	for _, method := range []string{"ddiff", "other"} {
		for i := range items {
			r := reporttest.Result(t, "hdr", method, fmt.Sprint(i), 0, reporttest.Scored(20, 10, 0.5, 0))
			reporttest.Traced(t, store, &r, []float64{float64(i)}, nil)
			results = append(results, r)
		}
	}
	s, err := entry.Collect(reporttest.Stream(results), nil, false)
	reporttest.Must(t, err)
	summary, err := aggregate.SummarizeEntries(s, nil, selection.First, nil)
	reporttest.Must(t, err)
	w := &figureWriter{store: store, summary: summary, limits: traceLimits{total: 2 * limit, line: 100}}
	reporttest.Must(t, w.writeAll(t.Context(), s.All()))
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

func TestTraceLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ problems, approaches, want int }{{1, 1, 128}, {1, 2, 128}, {8, 2, 64}, {40, 30, 6}} {
		var s aggregate.Summary
		for p := range tt.problems {
			for a := range tt.approaches {
				s.Rows = append(s.Rows, aggregate.Row{Images: 1, Problem: sweep.Problem{Sigma: manifest.Sigma(p), Size: "x"}, Approach: sweep.Approach{Method: fmt.Sprint(a)}})
			}
		}
		got := reportTraces().divide(s).line
		if lines := min(tt.problems, maxProblems) * min(tt.approaches, maxLines); got != tt.want || got*lines > 1024 {
			t.Errorf("%v: %d traces for each of %d lines", tt, got, lines)
		}
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

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h, extreme histogram
	for _, v := range []float64{20, 20.1, 20.9, 21, 23.99, math.NaN()} {
		h.add(v)
	}
	var got []string
	for _, p := range h.steps(1) {
		got = append(got, fmt.Sprintf("%g:%g", p.X, p.Y))
	}
	if want := "20:3 21:1 22:0 23:1 24:0"; len(h) != 5 || strings.Join(got, " ") != want {
		t.Errorf("%d values in %v, want %s", len(h), got, want)
	}
	if w := binWidth([]histogram{h}); w != 0.5 { // eight bins
		t.Errorf("bins of %g dB", w)
	}
	extreme.add(-0.1)
	extreme.add(-1e300)
	if w := binWidth([]histogram{extreme}); w != 100 || len(extreme.steps(w)) != 11 {
		t.Errorf("%d bins of %g dB", len(extreme.steps(w)), w)
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
