package gpuworker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
)

// The measurement of a race is kept beside the curves. A small gain does not change the provider, nor does a damaged file.
func TestTunerRace(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	file := filepath.Join(t.TempDir(), "batch.json")
	tuner := newTuner(t, gpuworker.TunerConfig{File: file})
	for name, c := range map[string]struct {
		other time.Duration
		want  string
	}{
		"faster": {50 * ms, "openvino"}, "a little faster": {98 * ms, "cpu"}, "faster by 5 %": {95 * ms, "cpu"}, "slower": {150 * ms, "cpu"},
	} {
		w := gpuworker.Workload{Prior: name, Height: 64, Width: 64}
		if _, known := tuner.Fastest(w, "cpu"); known {
			t.Errorf("%s: known before the race", name)
		}
		if got := tuner.RecordRace(w, "cpu", map[string]time.Duration{"cpu": 100 * ms, "openvino": c.other}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		again := newTuner(t, gpuworker.TunerConfig{File: file})
		if got, known := again.Fastest(w, "cpu"); !known || got != c.want {
			t.Errorf("%s: loaded %s, %v; want %s", name, got, known, c.want)
		}
		w.Width = 128
		if got, known := again.Fastest(w, "cpu"); known || got != "cpu" {
			t.Errorf("%s: another shape is %s, %v", name, got, known)
		}
	}
	// Of several providers the fastest is used, and of equally fast ones the first by name.
	for want, times := range map[string]map[string]time.Duration{
		"a": {"cpu": 100 * ms, "a": 50 * ms, "b": 50 * ms},
		"b": {"cpu": 100 * ms, "a": 60 * ms, "b": 50 * ms},
		"c": {"cpu": 100 * ms, "b": 60 * ms, "c": 50 * ms, "d": 70 * ms},
	} {
		if got := tuner.RecordRace(gpuworker.Workload{Prior: "several"}, "cpu", times); got != want {
			t.Errorf("%v: %s, want %s", times, got, want)
		}
	}
	// A curve keeps the choices, and the reverse.
	curve := gpuworker.Workload{Prior: "p", Provider: "cpu"}
	drive(tuner, curve, map[int]time.Duration{1: 80, 2: 30, 4: 40})
	tuner.RecordRace(gpuworker.Workload{Prior: "last"}, "cpu", map[string]time.Duration{"cpu": ms})
	again := newTuner(t, gpuworker.TunerConfig{File: file})
	if _, known := again.Fastest(gpuworker.Workload{Prior: "faster", Height: 64, Width: 64}, "cpu"); !known || again.Size("c", curve, 0) != 2 {
		t.Errorf("choice known %v, size %d", known, again.Size("c", curve, 0))
	}
	data, err := os.ReadFile(file)
	must(t, err)
	for _, bad := range []string{strings.Replace(string(data), `"cpu": 0.1`, `"cpu": -1`, 1), strings.Replace(string(data), `"cpu": 0.1`, `"cpu": 0`, 1), strings.Replace(string(data), `"choices": [`, `"choices": [null,`, 1)} {
		if bad == string(data) {
			t.Fatal("the file was not damaged")
		}
		must(t, os.WriteFile(file, []byte(bad), 0o644))
		if _, known := newTuner(t, gpuworker.TunerConfig{File: file}).Fastest(gpuworker.Workload{Prior: "last"}, "cpu"); known {
			t.Errorf("a damaged file was used: %s", bad)
		}
	}
}
