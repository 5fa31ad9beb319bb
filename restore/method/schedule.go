package method

import (
	"fmt"
	"math"
)

// Level is the noise level of one step on a respaced schedule.
type Level struct {
	Time int
	// Alpha is ᾱ_t, Next is ᾱ of the following step's time, 1 after the last step.
	Alpha, Next float64
}

// Levels respaces a schedule to n steps. Their times are spread evenly from the last to the first, round(i·(T−1)/(n−1)) for i = n−1 … 0, halves
// to even, as in guided-diffusion. It returns ErrSetting unless 2 ≤ n ≤ T.
func Levels(s Schedule, n int) ([]Level, error) {
	return levelsFrom(s, s.Steps()-1, n)
}

// levelsFrom are n levels whose times are spread evenly from start to 0, or from n−1 if that is later.
func levelsFrom(s Schedule, start, n int) ([]Level, error) {
	if n < 2 || n > s.Steps() {
		return nil, fmt.Errorf("%w steps: %d is outside 2..%d, the steps of the prior's schedule", ErrSetting, n, s.Steps())
	}
	start = min(max(start, n-1), s.Steps()-1)
	times := make([]int, n)
	for i := range times {
		times[n-1-i] = int(math.RoundToEven(float64(i) * float64(start) / float64(n-1)))
	}
	return levelsAt(s, times), nil
}

// levelsAt returns the levels of descending times.
func levelsAt(s Schedule, times []int) []Level {
	out := make([]Level, len(times))
	for i, t := range times {
		out[i] = Level{Time: t, Alpha: s.AlphaBar[t], Next: 1}
		if i+1 < len(times) {
			out[i].Next = s.AlphaBar[times[i+1]]
		}
	}
	return out
}

// stridedLevels are n levels from time 0 up, at the distance (start+1)/n, rounded down: with the last time as the start as in the code of DDIM.
func stridedLevels(s Schedule, start, n int) []Level {
	times := make([]int, n)
	for i := range times {
		times[n-1-i] = i * ((start + 1) / n)
	}
	return levelsAt(s, times)
}
