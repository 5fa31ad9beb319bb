package tuner

import (
	"maps"
	"slices"
	"time"
)

// choiceGain is the ratio of times below which the alternative of a runtime is used: a little gain is noise.
const choiceGain = 0.95

// choice holds the times of one evaluation of a network on several providers.
type choice struct {
	Workload
	// Seconds are the times by provider.
	Seconds map[string]float64 `json:"seconds_per_evaluation"`
}

// fastest returns the provider to use. The first one is used unless another saves more than 5 %. Of equally fast ones it is the
// first by name.
func (c choice) fastest(first string) string {
	best := first
	for _, provider := range slices.Sorted(maps.Keys(c.Seconds)) {
		if s, limit := c.Seconds[provider], choiceGain*c.Seconds[first]; s < limit && (best == first || s < c.Seconds[best]) {
			best = provider
		}
	}
	return best
}

// Fastest returns the provider to use for a workload without a provider, and whether it was measured before.
func (t *Tuner) Fastest(w Workload, first string) (provider string, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, known := t.choices[w]
	if !known {
		return first, false
	}
	return c.fastest(first), true
}

// RecordRace records the times of one evaluation by provider, and returns the provider to use.
func (t *Tuner) RecordRace(w Workload, first string, times map[string]time.Duration) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := choice{Workload: w, Seconds: map[string]float64{}}
	for provider, d := range times {
		c.Seconds[provider] = d.Seconds()
	}
	t.choices[w] = c
	best := c.fastest(first)
	t.log.Info("chose the provider of a network", "provider", best, "prior", w.Prior[:min(12, len(w.Prior))],
		"height", w.Height, "width", w.Width, "seconds", c.Seconds)
	t.store(func(f *curvesFile) {
		f.Choices = append(slices.DeleteFunc(f.Choices, func(k choice) bool { return k.Workload == w }), c)
	})
	return best
}
