package gpuworker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func tunerOf(t *testing.T, cfg TunerConfig) *Tuner {
	t.Helper()
	tuner, err := NewTuner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tuner
}

func TestTunerConfigNamesField(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, maxBatch + 1} {
		if _, err := NewTuner(TunerConfig{Max: n}); err == nil || !strings.Contains(err.Error(), "make tuner: Max: ") {
			t.Errorf("Max %d: %v", n, err)
		}
	}
	for n, want := range map[int]int{0: defaultMax, 1: 1, maxBatch: maxBatch} {
		if tuner := tunerOf(t, TunerConfig{Max: n}); tuner.cfg.Max != want {
			t.Errorf("Max %d: %d", n, tuner.cfg.Max)
		}
	}
}

// The search continues while a size saves more than 5 %, up to the limits of the configuration and of the memory.
func TestEndOfSearch(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		max, ceiling int
		times        []time.Duration
		best         int
	}{
		"saves 5 %":                 {8, 0, []time.Duration{100 * s, 95 * s}, 1},
		"saves more":                {8, 0, []time.Duration{100 * s, 94 * s}, 0},
		"at the limit":              {4, 0, []time.Duration{100 * s, 50 * s}, 0},
		"beyond the limit":          {4, 0, []time.Duration{100 * s, 50 * s, 25 * s}, 4},
		"at the ceiling":            {8, 4, []time.Duration{100 * s, 50 * s}, 0},
		"beyond the ceiling":        {8, 2, []time.Duration{100 * s, 50 * s}, 2},
		"the smallest within 5 %":   {8, 4, []time.Duration{100 * s, 50 * s, 48 * s}, 2},
		"the smallest at 5 %":       {8, 0, []time.Duration{100 * s, 100 * s}, 1},
		"no time of a failed batch": {8, 0, []time.Duration{0, 0}, 0},
		"one":                       {1, 0, []time.Duration{s}, 1},
	} {
		tuner, w := tunerOf(t, TunerConfig{Max: tt.max}), Workload{Prior: "p"}
		tuner.curve(w).Ceiling = tt.ceiling
		for i, d := range tt.times {
			tuner.Record(w, 1<<i, d)
		}
		if c := tuner.curve(w); c.Best != tt.best {
			t.Errorf("%s: best %d, want %d, points %v", name, c.Best, tt.best, c.Points)
		}
	}
}

// Only the size of the search is recorded, and only during the search.
func TestRecordOfOtherSizes(t *testing.T) {
	t.Parallel()
	tuner, w := tunerOf(t, TunerConfig{Max: 4}), Workload{Prior: "p"}
	tuner.Record(w, 2, time.Second)
	if n := len(tuner.curve(w).Points); n != 0 {
		t.Errorf("%d points of another size", n)
	}
	if tuner.Expected(w) != 0 || tuner.Expected(Workload{}) != 0 {
		t.Error("an expectation without a measurement")
	}
	for _, n := range []int{1, 2, 4, 1, 2, 4} {
		tuner.Record(w, n, time.Second/time.Duration(n))
	}
	if c := tuner.curve(w); len(c.Points) != 3 || c.Best != 4 {
		t.Errorf("%+v", c)
	}
	if d := tuner.Expected(w); d != time.Second {
		t.Errorf("expected %v", d)
	}
	if n := tuner.Size("c", w, 9); n != 9 {
		t.Errorf("a size of %d without a ceiling", n)
	}
	tuner.cfg.Max = 2
	if n := tuner.Size("c", w, 0); n != 2 {
		t.Errorf("a size of %d beyond the limit", n)
	}
}

// A size that exceeded the memory removes the larger measurements; it ends the search only if no size is left.
func TestCeilingOfMemory(t *testing.T) {
	t.Parallel()
	tuner, w := tunerOf(t, TunerConfig{}), Workload{Prior: "p"}
	tuner.RecordOutOfMemory(w, 1)
	if tuner.curve(w).Ceiling != 0 {
		t.Error("an item that does not fit alone sets a ceiling")
	}
	tuner.RecordOutOfMemory(w, 32)
	for _, n := range []int{1, 2, 4} {
		tuner.Record(w, n, time.Second/time.Duration(n))
	}
	tuner.RecordOutOfMemory(w, 16) // another process uses memory
	if c := tuner.curve(w); c.Ceiling != 8 || c.Best != 0 || len(c.Points) != 3 {
		t.Errorf("during the search: %+v", c)
	}
	tuner.RecordOutOfMemory(w, 8)
	if c := tuner.curve(w); c.Ceiling != 4 || c.Best != 4 || len(c.Points) != 3 {
		t.Errorf("after the search: %+v", c)
	}
	tuner.RecordOutOfMemory(w, 4)
	if c := tuner.curve(w); c.Ceiling != 2 || c.Best != 2 || len(c.Points) != 2 {
		t.Errorf("after a measured size: %+v", c)
	}
	if n := tuner.Size("c", w, 2); n != 2 {
		t.Errorf("a size of %d at the ceiling", n)
	}
	if n := tuner.Size("c", w, 3); n != 2 {
		t.Errorf("a size of %d beyond the ceiling", n)
	}
}

func TestValidCurves(t *testing.T) {
	t.Parallel()
	points := func(sizes ...int) (out []point) {
		for _, n := range sizes {
			out = append(out, point{n, 1})
		}
		return out
	}
	for name, tt := range map[string]struct {
		curve curve
		valid bool
	}{
		"empty":               {curve{}, true},
		"search":              {curve{Points: points(1, 2)}, true},
		"best":                {curve{Points: points(1, 2, 4), Best: 2, Ceiling: 4}, true},
		"last":                {curve{Points: points(1, 2, 4), Best: 4}, true},
		"best not measured":   {curve{Points: points(1, 2), Best: 4}, false},
		"best of nothing":     {curve{Best: 1}, false},
		"gap":                 {curve{Points: points(1, 4)}, false},
		"not from one":        {curve{Points: points(2, 4)}, false},
		"negative ceiling":    {curve{Ceiling: -1}, false},
		"no time":             {curve{Points: []point{{1, 0}}}, false},
		"the largest":         {curve{Points: points(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}, true},
		"beyond the largest":  {curve{Points: points(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)}, false},
		"the time of another": {curve{Points: []point{{1, 1}, {2, -1}}}, false},
	} {
		if got := tt.curve.valid(); got != tt.valid {
			t.Errorf("%s: valid %v", name, got)
		}
	}
	for name, tt := range map[string]struct {
		times map[string]float64
		valid bool
	}{"none": {nil, false}, "one": {map[string]float64{"a": 1}, true}, "zero": {map[string]float64{"a": 1, "b": 0}, false}} {
		if got := (&choice{Seconds: tt.times}).valid(); got != tt.valid {
			t.Errorf("choice %s: valid %v", name, got)
		}
	}
}

// A provider is used instead of the first if it saves more than 5 %; of several the fastest.
func TestFastestProvider(t *testing.T) {
	t.Parallel()
	for want, times := range map[string]map[string]float64{
		"first": {"first": 100, "a": 95, "b": 96}, "a": {"first": 100, "a": 94, "b": 95},
		"b": {"first": 100, "a": 50, "b": 40, "c": 60},
	} {
		for range 20 { // in any order
			if got := (choice{Seconds: times}).fastest("first"); got != want {
				t.Errorf("%v: %s", times, got)
			}
		}
	}
}

// Of the curves of a prior and a shape the fastest counts. Curves with an operator file do not.
func TestExpectTakesFastest(t *testing.T) {
	t.Parallel()
	tuner := tunerOf(t, TunerConfig{})
	w := Workload{Prior: "p", Provider: "cpu", Channels: 3, Height: 64, Width: 32}
	tuner.Record(w, 1, 2*time.Second)
	other := w
	other.Provider = "cuda"
	tuner.Record(other, 1, time.Second)
	own := w
	own.Operator, own.Provider = "o", "cuda"
	tuner.Record(own, 1, time.Millisecond)
	for range 20 { // in any order
		e := Expectation{Seconds: 1}
		tuner.Expect(&e, "p", "", 3, 64, 32, 2, 5)
		if e.Seconds != 11 || e.Provider != "cuda" || e.Unknown != 0 {
			t.Fatalf("%+v", e)
		}
	}
	for _, shape := range [][3]int{{1, 64, 32}, {3, 32, 32}, {3, 64, 64}} {
		e := Expectation{Unknown: 1}
		tuner.Expect(&e, "p", "cpu", shape[0], shape[1], shape[2], 2, 5)
		if e.Seconds != 0 || e.Unknown != 3 || e.Provider != "" {
			t.Errorf("shape %v: %+v", shape, e)
		}
	}
}

// A damaged file is replaced, one that cannot be read is kept.
func TestChangeOfCurvesFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "batch.json")
	if f, err := readCurves(file); err != nil || len(f.Curves) != 0 {
		t.Errorf("no file: %+v, %v", f, err)
	}
	add := func(f *curvesFile) { f.Curves = append(f.Curves, &curve{Workload: Workload{Prior: "p"}}) }
	for want := range 3 {
		if err := changeCurves(file, add); err != nil {
			t.Fatal(err)
		}
		if f, err := readCurves(file); err != nil || len(f.Curves) != want+1 || f.Schema != curvesSchema {
			t.Errorf("%+v, %v", f, err)
		}
	}
	for _, bad := range []string{"", `{"schema":1,"curves":[null]}`, `{"schema":1,"curves":[{"ceiling":-1}]}`, `{"schema":0}`, `{"schema":1,"choices":[null]}`} {
		if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if f, err := readCurves(file); !errors.Is(err, errCurves) || len(f.Curves)+len(f.Choices) != 0 {
			t.Errorf("%q: %+v, %v", bad, f, err)
		}
		if err := changeCurves(file, add); err != nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files beside the curves, %v", len(entries)-1, err)
	}
	// The path is a folder, or below a file.
	log := &strings.Builder{}
	for _, bad := range []string{dir, filepath.Join(file, "below")} {
		log.Reset()
		tuner := tunerOf(t, TunerConfig{File: bad, Logger: slog.New(slog.NewTextHandler(log, nil))})
		tuner.Record(Workload{Prior: "p"}, 1, time.Second)
		if got := log.String(); !strings.Contains(got, "could not store batch sizes") {
			t.Errorf("%s: log %s", bad, got)
		}
	}
	if err := replaceFile(dir, nil); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*-*")); err != nil || len(left) != 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}
