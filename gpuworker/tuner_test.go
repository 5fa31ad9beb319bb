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

// drive measures sizes until the tuner asks for one twice, at given times per image.
func drive(tuner *gpuworker.Tuner, w gpuworker.Workload, perImage map[int]time.Duration) (tried []int) {
	for {
		n := tuner.Size("c", w, 0)
		if len(tried) > 0 && n <= tried[len(tried)-1] {
			return tried
		}
		tried = append(tried, n)
		tuner.Measured(w, n, perImage[n])
	}
}

func TestTunerFindsTheBest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		perImage map[int]time.Duration
		max      int
		tried    []int
		best     int
	}{
		{"a device that saturates at 8", map[int]time.Duration{1: 80 * ms, 2: 42 * ms, 4: 23 * ms, 8: 14 * ms, 16: 13800 * time.Microsecond}, 0, []int{1, 2, 4, 8, 16}, 8},
		{"one that gains nothing", map[int]time.Duration{1: 100 * ms, 2: 99 * ms}, 0, []int{1, 2}, 1},
		{"one that loses", map[int]time.Duration{1: 100 * ms, 2: 130 * ms}, 0, []int{1, 2}, 1},
		{"one that gains up to the limit", map[int]time.Duration{1: 80 * ms, 2: 40 * ms, 4: 20 * ms, 8: 10 * ms}, 8, []int{1, 2, 4, 8}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tuner, w := newTuner(t, gpuworker.TunerConfig{Max: c.max}), gpuworker.Workload{Prior: "p", Height: 64, Width: 64}
			if n := tuner.Pull("c"); n != 1 {
				t.Errorf("pulls %d items of an unknown campaign", n)
			}
			tried := drive(tuner, w, c.perImage)
			if len(tried) != len(c.tried) {
				t.Errorf("tried %v, want %v", tried, c.tried)
			}
			if n := tuner.Size("c", w, 0); n != c.best {
				t.Errorf("uses %d, want %d", n, c.best)
			}
			if n := tuner.Pull("c"); n != c.best {
				t.Errorf("pulls %d items, want %d", n, c.best)
			}
			if n := tuner.Size("c", w, 3); n != 3 {
				t.Errorf("a campaign's own size of 3 became %d", n)
			}
			other := w
			other.Width = 128
			if n := tuner.Size("d", other, 0); n != 1 {
				t.Errorf("another size of image begins at %d", n)
			}
		})
	}
}

func TestTunerMemory(t *testing.T) {
	t.Parallel()
	tuner, w := newTuner(t, gpuworker.TunerConfig{}), gpuworker.Workload{Prior: "p"}
	for n, ms := range []int{80, 40, 20} {
		tuner.Measured(w, 1<<n, time.Duration(ms)*time.Millisecond)
	}
	if n := tuner.Size("c", w, 0); n != 8 {
		t.Fatalf("tries %d, want 8", n)
	}
	tuner.Exceeded(w, 8)
	if n := tuner.Size("c", w, 0); n != 4 {
		t.Errorf("uses %d after 8 did not fit, want 4", n)
	}
	if n := tuner.Size("c", w, 32); n != 4 {
		t.Errorf("a campaign that asks for 32 gets %d, want 4", n)
	}
	tuner.Exceeded(w, 4) // another process takes memory, too
	if n := tuner.Size("c", w, 0); n != 2 {
		t.Errorf("uses %d after 4 did not fit, want 2", n)
	}
	// Before anything was measured.
	fresh := newTuner(t, gpuworker.TunerConfig{})
	fresh.Exceeded(w, 2)
	if n := fresh.Size("c", w, 16); n != 1 {
		t.Errorf("uses %d, want 1", n)
	}
	if drive(fresh, w, map[int]time.Duration{1: time.Second}); fresh.Size("c", w, 0) != 1 {
		t.Errorf("tries %d, above what fits", fresh.Size("c", w, 0))
	}
}

// TestTunerFile keeps curves between processes.
func TestTunerFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cache", "batch.json")
	a, b := gpuworker.Workload{Prior: "a", Provider: "cpu"}, gpuworker.Workload{Prior: "b", Provider: "cpu"}
	one, two := newTuner(t, gpuworker.TunerConfig{File: file}), newTuner(t, gpuworker.TunerConfig{File: file})
	drive(one, a, map[int]time.Duration{1: 80, 2: 30, 4: 40})
	drive(two, b, map[int]time.Duration{1: 80, 2: 90})
	again := newTuner(t, gpuworker.TunerConfig{File: file})
	if n, m := again.Size("c", a, 0), again.Size("c", b, 0); n != 2 || m != 1 {
		t.Errorf("reads the sizes %d and %d, want 2 and 1", n, m)
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
			t.Errorf("a bad file %q gives the size %d", bad, n)
		}
		fresh.Measured(a, 1, time.Second) // and can be written again
		if got := newTuner(t, gpuworker.TunerConfig{File: file}).Size("c", a, 0); got != 2 {
			t.Errorf("after a bad file the next size is %d, want 2", got)
		}
	}
}
