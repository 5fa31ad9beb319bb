package tuner

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"ddiff/restore/operator"
)

func newTuner() *Tuner { return New(slog.New(slog.DiscardHandler)) }

// The search continues while a size saves more than 5 %, up to the limits of the configuration and of the memory.
func TestEndOfSearch(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tt := range map[string]struct {
		ceiling int
		times   []time.Duration
		best    int
	}{
		"saves 5 %":                 {0, []time.Duration{100 * s, 95 * s, 100 * s, 95 * s}, 1},
		"saves 5 % once":            {0, []time.Duration{100 * s, 95 * s}, 0},
		"saves more":                {0, []time.Duration{100 * s, 94 * s}, 0},
		"at the limit":              {0, []time.Duration{64 * s, 32 * s, 16 * s, 8 * s, 4 * s}, 0},
		"beyond the limit":          {0, []time.Duration{64 * s, 32 * s, 16 * s, 8 * s, 4 * s, 2 * s}, 32},
		"at the ceiling":            {4, []time.Duration{100 * s, 50 * s}, 0},
		"beyond the ceiling":        {2, []time.Duration{100 * s, 50 * s}, 2},
		"the smallest within 5 %":   {4, []time.Duration{100 * s, 50 * s, 48 * s, 50 * s, 48 * s}, 2},
		"the smallest at 5 %":       {0, []time.Duration{100 * s, 100 * s, 100 * s, 100 * s}, 1},
		"no time of a failed batch": {0, []time.Duration{0, 0}, 0},
	} {
		tuner, w := newTuner(), Workload{Prior: "p"}
		tuner.curve(w).Ceiling = tt.ceiling
		for _, d := range tt.times {
			tuner.Record(w, tuner.Size("c", w, 0), d)
		}
		if c := tuner.curve(w); c.Best != tt.best {
			t.Errorf("%s: best %d, want %d, points %v", name, c.Best, tt.best, c.Points)
		}
	}
}

// Only the size of the search is recorded, and only during the search.
func TestRecordOfOtherSizes(t *testing.T) {
	t.Parallel()
	tuner, w := newTuner(), Workload{Prior: "p"}
	tuner.Record(w, 2, time.Second)
	if n := len(tuner.curve(w).Points); n != 0 {
		t.Errorf("%d points of another size", n)
	}
	if tuner.Expected(w) != 0 || tuner.Expected(Workload{}) != 0 {
		t.Error("an expectation without a measurement")
	}
	for _, n := range []int{1, 2, 4, 8, 1, 2, 4, 8, 4, 8} {
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
	tuner, w := newTuner(), Workload{Prior: "p"}
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

// drive records times per image until the search ends, and returns the tried sizes.
func drive(tuner *Tuner, w Workload, perImage map[int]time.Duration) (tried []int) {
	for {
		n := tuner.Size("c", w, 0)
		if tuner.curve(w).Best > 0 {
			return tried
		}
		tried = append(tried, n)
		tuner.Record(w, n, perImage[n])
	}
}

// Another process begins to use the device in the middle of the search, so that all sizes take twice as long from then on: the best size is found.
func TestSearchOnSharedDevice(t *testing.T) {
	t.Parallel()
	alone := map[int]int{1: 1400, 2: 950, 4: 585, 8: 470, 16: 440, 32: 430} // µs, of an H200
	for after := range 8 {
		tuner, w := newTuner(), Workload{Prior: "p"}
		for batches := 0; tuner.curve(w).Best == 0; batches++ {
			if batches > 24 {
				t.Fatalf("after %d batches: no end", after)
			}
			n := tuner.Size("c", w, 0)
			d := time.Duration(alone[n]) * time.Microsecond
			if batches >= after {
				d *= 2
			}
			tuner.Record(w, n, d)
		}
		if best := tuner.curve(w).Best; best != 16 {
			t.Errorf("after %d batches: %d images are best, want 16", after, best)
		}
	}
}

// The sizes are tried in order; the next lease is as large as the best one. Another shape is measured on its own.
func TestTunerFindsBestSize(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tuner, w := newTuner(), Workload{Prior: "p", Image: operator.Shape{Channels: 3, Height: 64, Width: 64}}
	if n := tuner.LeaseSize("c"); n != 1 {
		t.Errorf("LeaseSize of an unknown campaign is %d, want 1", n)
	}
	tried := drive(tuner, w, map[int]time.Duration{1: 80 * ms, 2: 42 * ms, 4: 23 * ms, 8: 14 * ms, 16: 13800 * time.Microsecond})
	if want := []int{1, 2, 4, 8, 16, 8, 16}; !slices.Equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
	if size, lease := tuner.Size("c", w, 0), tuner.LeaseSize("c"); size != 8 || lease != 8 {
		t.Errorf("a size of %d and leases of %d, want 8", size, lease)
	}
	w.Image.Width = 128
	if n := tuner.Size("d", w, 0); n != 1 {
		t.Errorf("Size of another image shape is %d, want 1", n)
	}
}

// Before the first measurement, a size that exceeded the memory limits the sizes, also one that was formed before.
func TestCeilingBeforeSearch(t *testing.T) {
	t.Parallel()
	tuner, w := newTuner(), Workload{Prior: "p"}
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
