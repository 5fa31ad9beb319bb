package gpuworker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
)

func newTuner(t *testing.T, cfg gpuworker.TunerConfig) *gpuworker.Tuner {
	t.Helper()
	tuner, err := gpuworker.NewTuner(cfg)
	must(t, err)
	return tuner
}

// drive records times per image until the search ends, and returns the tried sizes.
func drive(tuner *gpuworker.Tuner, w gpuworker.Workload, perImage map[int]time.Duration) (tried []int) {
	for {
		n := tuner.Size("c", w, 0)
		if len(tried) > 0 && n <= tried[len(tried)-1] {
			return tried
		}
		tried = append(tried, n)
		tuner.Record(w, n, perImage[n])
	}
}

func TestTunerFindsBestSize(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		perImage map[int]time.Duration
		max      int
		tried    []int
		best     int
	}{
		{"saturation at 8", map[int]time.Duration{1: 80 * ms, 2: 42 * ms, 4: 23 * ms, 8: 14 * ms, 16: 13800 * time.Microsecond}, 0, []int{1, 2, 4, 8, 16}, 8},
		{"no gain", map[int]time.Duration{1: 100 * ms, 2: 99 * ms}, 0, []int{1, 2}, 1},
		{"a loss", map[int]time.Duration{1: 100 * ms, 2: 130 * ms}, 0, []int{1, 2}, 1},
		{"gain up to the limit", map[int]time.Duration{1: 80 * ms, 2: 40 * ms, 4: 20 * ms, 8: 10 * ms}, 8, []int{1, 2, 4, 8}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tuner, w := newTuner(t, gpuworker.TunerConfig{Max: c.max}), gpuworker.Workload{Prior: "p", Height: 64, Width: 64}
			if n := tuner.LeaseSize("c"); n != 1 {
				t.Errorf("LeaseSize of an unknown campaign is %d, want 1", n)
			}
			tried := drive(tuner, w, c.perImage)
			if len(tried) != len(c.tried) {
				t.Errorf("tried %v, want %v", tried, c.tried)
			}
			if n := tuner.Size("c", w, 0); n != c.best {
				t.Errorf("Size is %d, want %d", n, c.best)
			}
			if n := tuner.LeaseSize("c"); n != c.best {
				t.Errorf("LeaseSize is %d, want %d", n, c.best)
			}
			if n := tuner.Size("c", w, 3); n != 3 {
				t.Errorf("Size with the limit 3 is %d", n)
			}
			other := w
			other.Width = 128
			if n := tuner.Size("d", other, 0); n != 1 {
				t.Errorf("Size of another image shape is %d, want 1", n)
			}
		})
	}
}

func TestTunerOutOfMemory(t *testing.T) {
	t.Parallel()
	tuner, w := newTuner(t, gpuworker.TunerConfig{}), gpuworker.Workload{Prior: "p"}
	for n, ms := range []int{80, 40, 20} {
		tuner.Record(w, 1<<n, time.Duration(ms)*time.Millisecond)
	}
	if n := tuner.Size("c", w, 0); n != 8 {
		t.Fatalf("Size is %d, want 8", n)
	}
	tuner.RecordOutOfMemory(w, 8)
	if n := tuner.Size("c", w, 0); n != 4 {
		t.Errorf("Size after 8 exceeded memory is %d, want 4", n)
	}
	if n := tuner.Size("c", w, 32); n != 4 {
		t.Errorf("Size with the limit 32 is %d, want 4", n)
	}
	tuner.RecordOutOfMemory(w, 4) // another process uses memory too
	if n := tuner.Size("c", w, 0); n != 2 {
		t.Errorf("Size after 4 exceeded memory is %d, want 2", n)
	}
	// Before the first measurement.
	fresh := newTuner(t, gpuworker.TunerConfig{})
	fresh.RecordOutOfMemory(w, 2)
	if n := fresh.Size("c", w, 16); n != 1 {
		t.Errorf("Size is %d, want 1", n)
	}
	fresh.RecordOutOfMemory(w, 8) // a batch that was formed before
	if n := fresh.Size("c", w, 16); n != 1 {
		t.Errorf("Size after 8 exceeded memory too is %d, want 1", n)
	}
	if drive(fresh, w, map[int]time.Duration{1: time.Second}); fresh.Size("c", w, 0) != 1 {
		t.Errorf("Size is %d, above the memory limit of 1", fresh.Size("c", w, 0))
	}
}

func TestTunerStoresCurves(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cache", "batch.json")
	a, b := gpuworker.Workload{Prior: "a", Provider: "cpu"}, gpuworker.Workload{Prior: "b", Provider: "cpu"}
	one, two := newTuner(t, gpuworker.TunerConfig{File: file}), newTuner(t, gpuworker.TunerConfig{File: file})
	drive(one, a, map[int]time.Duration{1: 80, 2: 30, 4: 40})
	drive(two, b, map[int]time.Duration{1: 80, 2: 90})
	again := newTuner(t, gpuworker.TunerConfig{File: file})
	if n, m := again.Size("c", a, 0), again.Size("c", b, 0); n != 2 || m != 1 {
		t.Errorf("loaded sizes are %d and %d, want 2 and 1", n, m)
	}
	data, err := os.ReadFile(file)
	must(t, err)
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
	must(t, json.Unmarshal(data, &content))
	if len(content.Curves) != 2 || len(content.Curves[0].Points) != 3 {
		t.Errorf("the file holds %s", data)
	}
	for _, bad := range []string{"{", `{"schema":9}`, strings.Replace(string(data), `"batch": 2`, `"batch": 3`, 1)} {
		must(t, os.WriteFile(file, []byte(bad), 0o644))
		fresh := newTuner(t, gpuworker.TunerConfig{File: file})
		if n := fresh.Size("c", a, 0); n != 1 {
			t.Errorf("with a bad file %q Size is %d, want 1", bad, n)
		}
		fresh.Record(a, 1, time.Second) // replaces the bad file
		if got := newTuner(t, gpuworker.TunerConfig{File: file}).Size("c", a, 0); got != 2 {
			t.Errorf("Size after a bad file is %d, want 2", got)
		}
	}
}
