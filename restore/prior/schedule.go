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

// Steps returns T, the number of time indices.
func (s Schedule) Steps() int { return len(s.AlphaBar) }

// ParseSchedule parses one of
//
//	linear:FIRST:LAST:T         β linear from FIRST to LAST (DDPM, guided-diffusion)
//	scaled_linear:FIRST:LAST:T  √β linear (latent diffusion)
//	cosine:T                    ᾱ_t = cos²(((t+1)/T + 0.008)/1.008·π/2), β ≤ 0.999 (improved DDPM)
func ParseSchedule(text string) (Schedule, error) {
	kind, rest, _ := strings.Cut(text, ":")
	var num []float64
	for f := range strings.SplitSeq(rest, ":") {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return Schedule{}, fmt.Errorf("%q is not a number", f)
		}
		num = append(num, x)
	}
	want := map[string]int{"linear": 3, "scaled_linear": 3, "cosine": 1}[kind]
	if want == 0 {
		return Schedule{}, fmt.Errorf("kind %q must be linear, scaled_linear or cosine", kind)
	}
	if len(num) != want {
		return Schedule{}, fmt.Errorf("%s takes %d numbers, got %d", kind, want, len(num))
	}
	n := int(num[want-1])
	if float64(n) != num[want-1] || n < 2 || n > 100_000 {
		return Schedule{}, fmt.Errorf("the number of steps must be an integer in 2..100000")
	}
	if kind == "cosine" {
		return cosine(n), nil
	}
	first, last := num[0], num[1]
	if !(first > 0 && last > first && last < 1) {
		return Schedule{}, fmt.Errorf("β must increase within (0, 1)")
	}
	return linear(first, last, n, kind == "scaled_linear"), nil
}

func linear(first, last float64, n int, roots bool) Schedule {
	if roots {
		first, last = math.Sqrt(first), math.Sqrt(last)
	}
	a := make([]float64, n)
	product := 1.0
	for i := range a {
		beta := first + (last-first)*float64(i)/float64(n-1)
		if roots {
			beta *= beta
		}
		product *= 1 - beta
		a[i] = product
	}
	return Schedule{a}
}

func cosine(n int) Schedule {
	f := func(t float64) float64 {
		c := math.Cos((t/float64(n) + 0.008) / 1.008 * math.Pi / 2)
		return c * c
	}
	a := make([]float64, n)
	product := 1.0
	for i := range a {
		beta := min(1-f(float64(i+1))/f(float64(i)), 0.999)
		product *= 1 - beta
		a[i] = product
	}
	return Schedule{a}
}
