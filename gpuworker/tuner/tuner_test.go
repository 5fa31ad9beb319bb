package tuner

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tunerOf returns a tuner with a file, if it is not empty.
func tunerOf(file string) *Tuner { return New(file, slog.New(slog.DiscardHandler)) }

// The search continues while a size saves more than 5 %, up to the limits of the configuration and of the memory.
func TestEndOfSearch(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		ceiling int
		times   []time.Duration
		best    int
	}{
		"saves 5 %":                 {0, []time.Duration{100 * s, 95 * s}, 1},
		"saves more":                {0, []time.Duration{100 * s, 94 * s}, 0},
		"at the limit":              {0, []time.Duration{64 * s, 32 * s, 16 * s, 8 * s, 4 * s}, 0},
		"beyond the limit":          {0, []time.Duration{64 * s, 32 * s, 16 * s, 8 * s, 4 * s, 2 * s}, 32},
		"at the ceiling":            {4, []time.Duration{100 * s, 50 * s}, 0},
		"beyond the ceiling":        {2, []time.Duration{100 * s, 50 * s}, 2},
		"the smallest within 5 %":   {4, []time.Duration{100 * s, 50 * s, 48 * s}, 2},
		"the smallest at 5 %":       {0, []time.Duration{100 * s, 100 * s}, 1},
		"no time of a failed batch": {0, []time.Duration{0, 0}, 0},
	} {
		tuner, w := tunerOf(""), Workload{Prior: "p"}
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
	tuner, w := tunerOf(""), Workload{Prior: "p"}
	tuner.Record(w, 2, time.Second)
	if n := len(tuner.curve(w).Points); n != 0 {
		t.Errorf("%d points of another size", n)
	}
	if tuner.Expected(w) != 0 || tuner.Expected(Workload{}) != 0 {
		t.Error("an expectation without a measurement")
	}
	for _, n := range []int{1, 2, 4, 8, 1, 2, 4, 8} {
		tuner.Record(w, n, time.Second/time.Duration(min(n, 4)))
	}
	if c := tuner.curve(w); len(c.Points) != 4 || c.Best != 4 {
		t.Errorf("%+v", c)
	}
	if d := tuner.Expected(w); d != time.Second {
		t.Errorf("expected %v", d)
	}
	if n := tuner.Size("c", w, 9); n != 9 {
		t.Errorf("a size of %d without a ceiling", n)
	}
}

// A size that exceeded the memory removes the larger measurements; it ends the search only if no size is left.
func TestCeilingOfMemory(t *testing.T) {
	t.Parallel()
	tuner, w := tunerOf(""), Workload{Prior: "p"}
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

// A damaged file is replaced, one that cannot be read is kept.
func TestChangeOfCurvesFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "batch.json")
	if f, err := readCurves(file); err != nil || len(f.Curves) != 0 {
		t.Errorf("no file: %+v, %v", f, err)
	}
	add := func(height int) error {
		return changeCurve(file, curve{Workload: Workload{Prior: "p", Height: height}})
	}
	for want := range 3 {
		if err := add(want); err != nil {
			t.Fatal(err)
		}
		if f, err := readCurves(file); err != nil || len(f.Curves) != want+1 || f.Schema != curvesSchema {
			t.Errorf("%+v, %v", f, err)
		}
	}
	for _, bad := range []string{"", `{"schema":0}`, `{"schema":9}`} {
		if err := os.WriteFile(file, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if f, err := readCurves(file); !errors.Is(err, errCurves) || len(f.Curves) != 0 {
			t.Errorf("%q: %+v, %v", bad, f, err)
		}
		if err := add(0); err != nil {
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
		tuner := New(bad, slog.New(slog.NewTextHandler(log, nil)))
		tuner.Record(Workload{Prior: "p"}, 1, time.Second)
		if got := log.String(); !strings.Contains(got, "could not store batch sizes") {
			t.Errorf("%s: log %s", bad, got)
		}
	}
}

// A damaged file of batch sizes is logged; a missing one is not.
func TestLogOfTunerFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sizes.json")
	for _, damaged := range []bool{false, true} {
		if damaged {
			if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		New(file, slog.New(slog.NewTextHandler(&log, nil)))
		if strings.Contains(log.String(), "skipped the file of batch sizes") != damaged {
			t.Errorf("damaged %t: log %s", damaged, log.String())
		}
	}
}

// drive records times per image until the search ends, and returns the tried sizes.
func drive(tuner *Tuner, w Workload, perImage map[int]time.Duration) (tried []int) {
	for {
		n := tuner.Size("c", w, 0)
		if len(tried) > 0 && n <= tried[len(tried)-1] {
			return tried
		}
		tried = append(tried, n)
		tuner.Record(w, n, perImage[n])
	}
}

// The sizes are tried in order; the next lease is as large as the best one. Another shape is measured on its own.
func TestTunerFindsBestSize(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tuner, w := tunerOf(""), Workload{Prior: "p", Height: 64, Width: 64}
	if n := tuner.LeaseSize("c"); n != 1 {
		t.Errorf("LeaseSize of an unknown campaign is %d, want 1", n)
	}
	tried := drive(tuner, w, map[int]time.Duration{1: 80 * ms, 2: 42 * ms, 4: 23 * ms, 8: 14 * ms, 16: 13800 * time.Microsecond})
	if want := []int{1, 2, 4, 8, 16}; !slices.Equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
	if size, lease := tuner.Size("c", w, 0), tuner.LeaseSize("c"); size != 8 || lease != 8 {
		t.Errorf("a size of %d and leases of %d, want 8", size, lease)
	}
	w.Width = 128
	if n := tuner.Size("d", w, 0); n != 1 {
		t.Errorf("Size of another image shape is %d, want 1", n)
	}
}

// Before the first measurement, a size that exceeded the memory limits the sizes, also one that was formed before.
func TestCeilingBeforeSearch(t *testing.T) {
	t.Parallel()
	tuner, w := tunerOf(""), Workload{Prior: "p"}
	for _, n := range []int{2, 8} {
		tuner.RecordOutOfMemory(w, n)
		if n := tuner.Size("c", w, 16); n != 1 {
			t.Errorf("Size is %d, want 1", n)
		}
	}
	if drive(tuner, w, map[int]time.Duration{1: time.Second}); tuner.Size("c", w, 0) != 1 {
		t.Errorf("Size is %d, above the memory limit of 1", tuner.Size("c", w, 0))
	}
}

func TestTunerStoresCurves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cache", "batch.json")
	a, b := Workload{Prior: "a", Provider: "cpu"}, Workload{Prior: "b", Provider: "cpu"}
	one, two := tunerOf(file), tunerOf(file)
	drive(one, a, map[int]time.Duration{1: 80, 2: 30, 4: 40})
	drive(two, b, map[int]time.Duration{1: 80, 2: 90})
	again := tunerOf(file)
	if n, m := again.Size("c", a, 0), again.Size("c", b, 0); n != 2 || m != 1 {
		t.Errorf("loaded sizes are %d and %d, want 2 and 1", n, m)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		Curves []struct {
			Prior  string
			Best   int
			Points []struct {
				Batch   int
				Seconds float64 `json:"seconds_per_image_step"`
			}
		}
	}
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	if len(content.Curves) != 2 || len(content.Curves[0].Points) != 3 {
		t.Errorf("the file holds %s", data)
	}
}
