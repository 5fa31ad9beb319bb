package gpuworker

import (
	"math"
	"testing"
	"time"
)

func TestTunerExpect(t *testing.T) {
	t.Parallel()
	tuner, err := NewTuner(TunerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w := Workload{Prior: "p", Provider: "cpu", Channels: 3, Height: 64, Width: 32}
	tuner.Record(w, 1, 200*time.Millisecond)
	tuner.Record(w, 2, 150*time.Millisecond)
	for _, tt := range []struct {
		name, prior, provider string
		width                 int
		seconds               float64
		unknown               int
	}{
		{"the best size", "p", "cpu", 32, 4 * 10 * 0.15, 0},
		{"any provider", "p", "", 32, 4 * 10 * 0.15, 0},
		{"another provider", "p", "cuda", 32, 0, 4},
		{"another prior", "q", "cpu", 32, 0, 4},
		{"another size", "p", "cpu", 64, 0, 4},
	} {
		var e Expectation
		tuner.Expect(&e, tt.prior, tt.provider, 3, 64, tt.width, 4, 10)
		if !(math.Abs(e.Seconds-tt.seconds) <= 1e-9) || e.Unknown != tt.unknown {
			t.Errorf("%s: %+v, want %g s and %d unknown", tt.name, e, tt.seconds, tt.unknown)
		}
	}
}
