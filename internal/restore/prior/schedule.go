package prior

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schedule is the noise schedule of a network's training: ᾱ_t for t = 0..T−1.
type Schedule struct {
	// AlphaBar is the cumulative product of 1 − β.
	AlphaBar []float64
}

// LongestSchedule is the largest number of time indices of a schedule.
const LongestSchedule = 100_000

// Steps returns T, the number of time indices.
func (s Schedule) Steps() int { return len(s.AlphaBar) }

// mostBeta is the largest β of the schedules that would end without any of the image, as in improved DDPM.
const mostBeta = 0.999

// ParseSchedule parses one of
//
//	linear:FIRST:LAST:T         β linear from FIRST to LAST (DDPM, guided-diffusion)
//	scaled_linear:FIRST:LAST:T  √β linear (latent diffusion)
//	cosine:T                    ᾱ_t = cos²(((t+1)/T + 0.008)/1.008·π/2), β ≤ 0.999 (improved DDPM)
//	table:ᾱ_0:ᾱ_1:…             these ᾱ, which decrease; the last may be 0
//	zero_snr:SCHEDULE           SCHEDULE with √ᾱ stretched linearly to end at 0 (Lin et al., WACV 2024)
//	flow:LEVELS                 a network of flow times, called at the noise levels of the schedule LEVELS
//	sigma:LEVELS                a network of noise levels, called at those of the schedule LEVELS
//
// Methods divide by ᾱ: one that is 0 becomes a thousandth of the one before.
func ParseSchedule(text string) (Schedule, error) {
	_, text = noising(text)
	text, zero := strings.CutPrefix(text, "zero_snr:")
	s, err := parseLevels(text)
	if zero && err == nil {
		first, last := math.Sqrt(s.AlphaBar[0]), math.Sqrt(s.AlphaBar[s.Steps()-1])
		for t, a := range s.AlphaBar {
			root := (math.Sqrt(a) - last) * first / (first - last)
			s.AlphaBar[t] = float64(root * root) // never fused with the next operation
		}
		s.end()
	}
	return s, err
}

// end replaces a last ᾱ of 0.
func (s Schedule) end() {
	if last := s.Steps() - 1; s.AlphaBar[last] == 0 {
		s.AlphaBar[last] = s.AlphaBar[last-1] * (1 - mostBeta)
	}
}

// parseLevels parses a schedule without a prefix.
func parseLevels(text string) (Schedule, error) {
	kind, rest, _ := strings.Cut(text, ":")
	var num []float64
	for f := range strings.SplitSeq(rest, ":") {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return Schedule{}, fmt.Errorf("%q is not a number", f)
		}
		num = append(num, x)
	}
	if kind == "table" {
		return tabled(num)
	}
	want := map[string]int{"linear": 3, "scaled_linear": 3, "cosine": 1}[kind]
	if want == 0 {
		return Schedule{}, fmt.Errorf("kind %q must be linear, scaled_linear, cosine or table, behind zero_snr, flow or sigma or not", kind)
	}
	if len(num) != want {
		return Schedule{}, fmt.Errorf("%s takes %d numbers, got %d", kind, want, len(num))
	}
	n := int(num[want-1])
	if float64(n) != num[want-1] || n < 2 || n > LongestSchedule {
		return Schedule{}, fmt.Errorf("the number of steps must be an integer in 2..%d", LongestSchedule)
	}
	if kind == "cosine" {
		f := func(t int) float64 {
			c := math.Cos((float64(t)/float64(n) + 0.008) / 1.008 * math.Pi / 2)
			return c * c
		}
		return cumulative(n, func(t int) float64 { return min(1-f(t+1)/f(t), mostBeta) }), nil
	}
	first, last := num[0], num[1]
	if !(first > 0 && last > first && last < 1) {
		return Schedule{}, fmt.Errorf("β must increase within (0, 1)")
	}
	if kind == "linear" {
		return cumulative(n, func(t int) float64 { return between(first, last, t, n) }), nil
	}
	return cumulative(n, func(t int) float64 {
		root := between(math.Sqrt(first), math.Sqrt(last), t, n)
		return float64(root * root) // never fused with the next operation
	}), nil
}

// tabled returns the schedule of a table of ᾱ.
func tabled(a []float64) (Schedule, error) {
	if len(a) < 2 || len(a) > LongestSchedule {
		return Schedule{}, fmt.Errorf("a table has 2 to %d values, this one %d", LongestSchedule, len(a))
	}
	for t, x := range a {
		if t == 0 && !(x < 1) || t > 0 && !(x < a[t-1]) || !(x > 0 || x == 0 && t == len(a)-1) {
			return Schedule{}, fmt.Errorf("ᾱ must decrease within (0, 1), or to 0: value %d of the table is %g", t, x)
		}
	}
	s := Schedule{a}
	s.end()
	return s, nil
}

// between is the value at t of n that increases evenly from first to last.
func between(first, last float64, t, n int) float64 {
	return first + (last-first)*float64(t)/float64(n-1)
}

// cumulative returns the schedule of n values β.
func cumulative(n int, beta func(t int) float64) Schedule {
	a := make([]float64, n)
	product := 1.0
	for t := range a {
		product *= 1 - beta(t)
		a[t] = product
	}
	return Schedule{a}
}
