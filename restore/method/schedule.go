package method

import (
	"fmt"
	"math"

	"ddiff/restore/prior"
)

// Respace picks n of the time indices 0..total−1, evenly from first to last, in the order of the reverse process
// (descending): round(i·(total−1)/(n−1)), halves to even, as guided-diffusion does.
func Respace(total, n int) ([]int, error) {
	if n < 2 || n > total {
		return nil, fmt.Errorf("%w steps: %d is outside 2..%d, the steps of the prior's schedule", ErrSetting, n, total)
	}
	out := make([]int, n)
	for i := range out {
		out[n-1-i] = int(math.RoundToEven(float64(i) * float64(total-1) / float64(n-1)))
	}
	return out, nil
}

// Level is the noise level of one step on a respaced schedule.
type Level struct {
	Time int
	// Alpha is ᾱ_t, Next is ᾱ of the following step's time, 1 after the last step.
	Alpha, Next float64
}

// Levels respaces a schedule to n steps.
func Levels(s prior.Schedule, n int) ([]Level, error) {
	times, err := Respace(s.Steps(), n)
	if err != nil {
		return nil, err
	}
	return levelsAt(s, times), nil
}

// levelsAt returns the levels of descending times.
func levelsAt(s prior.Schedule, times []int) []Level {
	out := make([]Level, len(times))
	for i, t := range times {
		out[i] = Level{Time: t, Alpha: s.AlphaBar[t], Next: 1}
		if i+1 < len(times) {
			out[i].Next = s.AlphaBar[times[i+1]]
		}
	}
	return out
}

// stridedLevels are n levels from time 0 up, at the distance T/n, rounded down, as in the code of DDIM.
func stridedLevels(s prior.Schedule, n int) []Level {
	times := make([]int, n)
	for i := range times {
		times[n-1-i] = i * (s.Steps() / n)
	}
	return levelsAt(s, times)
}
