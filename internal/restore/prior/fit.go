package prior

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/noise"
)

// Fit is how well a network denoises a test picture if its card says a prediction and a schedule.
type Fit struct {
	Prediction Prediction `json:"prediction"`
	Schedule   string     `json:"schedule"`
	// Errors are the mean square errors of the clean image at [FitLevels], as a share of those of the noisy picture or of plain grey, whichever is less.
	Errors []float64 `json:"errors"`
}

// FitLevels are the noise levels of fits, for images in −1..1.
func FitLevels() []float64 { return []float64{0.1, 0.3, 1} }

// Error is the geometric mean of the errors.
func (f Fit) Error() float64 {
	sum := 0.0
	for _, e := range f.Errors {
		sum += math.Log(e)
	}
	return math.Exp(sum / float64(len(f.Errors)))
}

const (
	// doubtful is the ratio of the errors from which a card is doubted, trained the error that the better reading of it has at most.
	doubtful = 1.25
	trained  = 0.5
)

// Doubt returns why a card, whose fit is the first, is probably wrong, or nothing.
func Doubt(fits []Fit) string {
	if len(fits) == 0 {
		return ""
	}
	best := slices.MinFunc(fits, func(a, b Fit) int {
		if a.Error() < b.Error() {
			return -1
		}
		return 1
	})
	if card := fits[0].Error(); best.Error() <= trained && card > doubtful*best.Error() {
		return fmt.Sprintf("the network denoises a test picture %.1f dB better with prediction=%s and schedule=%s than with the card's %s and %s",
			10*math.Log10(card/best.Error()), best.Prediction, best.Schedule, fits[0].Prediction, fits[0].Schedule)
	}
	return ""
}

// readings are the card and its neighbours: other predictions, and the schedules of published networks with as many times. A continuous
// network has none.
func (c Card) readings(steps int) (out []Fit) {
	out = append(out, Fit{Prediction: c.Prediction, Schedule: c.Schedule})
	if c.Continuous() {
		return out
	}
	scale := 1000 / float64(steps)
	var known []Schedule
	for _, text := range []string{
		c.Schedule, fmt.Sprintf("linear:%.4g:%.4g:%d", 1e-4*scale, 0.02*scale, steps), fmt.Sprintf("scaled_linear:%.4g:%.4g:%d", 0.00085*scale, 0.012*scale, steps),
		fmt.Sprintf("cosine:%d", steps),
	} {
		s, err := ParseSchedule(text)
		if err != nil || slices.ContainsFunc(known, func(k Schedule) bool { return slices.Equal(k.AlphaBar, s.AlphaBar) }) {
			continue
		}
		known = append(known, s)
		for _, p := range []Prediction{Epsilon, Sample, Velocity} {
			if len(known) > 1 || p != c.Prediction {
				out = append(out, Fit{Prediction: p, Schedule: text})
			}
		}
	}
	return out
}

// Fits denoises a test picture at [FitLevels] as the card says, first, and as other cards would. It has none for a latent prior.
func (p *Prior) Fits(ctx context.Context, net *Network) ([]Fit, error) {
	if p.Card.Latent != nil {
		return nil, nil
	}
	dims := net.X.Dims()
	picture := testPicture(dims[0]*dims[1], dims[2], dims[3])
	eps := make([]float32, len(picture))
	noise.Normal(eps, fixedNoise(), noise.Step, 1, 1)
	power := 0.0
	for _, x := range picture {
		power += float64(x) * float64(x) / float64(len(picture))
	}
	fits := p.Card.readings(p.Schedule.Steps())
	for _, level := range FitLevels() {
		a, b := 1/math.Hypot(1, level), level/math.Hypot(1, level)
		predicted := map[int][]float32{}
		for i, f := range fits {
			s, err := ParseSchedule(f.Schedule)
			if err != nil {
				return nil, err
			}
			at := s.nearest(a * a)
			for k := range picture {
				net.X.F32[k] = float32(a*float64(picture[k]) + b*float64(eps[k]))
			}
			if net.T.I64[0] = int64(at); predicted[at] == nil {
				if err := net.Run(ctx); err != nil {
					return nil, err
				}
				if predicted[at] = slices.Clone(net.Y.F32); !finite(net.Y.F32) {
					return nil, fmt.Errorf("prior %s: %w: it predicts NaN or infinite values at time index %d", p.File, ErrGraph, at)
				}
			}
			if i == 0 && p.Card.Continuous() {
				f.Prediction = Velocity
			}
			sum := 0.0
			for k, y := range predicted[at] {
				d := f.Prediction.clean(a, b, float64(net.X.F32[k]), float64(y)) - float64(picture[k])
				sum += d * d / float64(len(picture))
			}
			fits[i].Errors = append(fits[i].Errors, sum/min(level*level, power))
		}
	}
	return fits, nil
}

// clean is the clean image of x = a·image + b·ε, of a prediction.
func (p Prediction) clean(a, b, x, predicted float64) float64 {
	switch p {
	case Sample:
		return predicted
	case Velocity:
		return a*x - b*predicted
	}
	return (x - b*predicted) / a
}

// nearest returns the time whose noise level is nearest to that of ᾱ, by its logarithm.
func (s Schedule) nearest(alphaBar float64) int {
	level := func(a float64) float64 { return math.Log((1 - a) / a) }
	best := 0
	for t, a := range s.AlphaBar {
		if math.Abs(level(a)-level(alphaBar)) < math.Abs(level(s.AlphaBar[best])-level(alphaBar)) {
			best = t
		}
	}
	return best
}

// testPicture draws soft discs before each other, which have edges and areas like photographs and nearly one colour in all channels.
func testPicture(channels, height, width int) []float32 {
	const discs = 60
	out := make([]float32, channels*height*width)
	draw := noise.NewStream(fixedNoise(), noise.Start)
	for range discs {
		r := 2 / math.Sqrt(draw.Between(0.02, 1)) // many small ones
		y0, x0 := draw.Between(0, float64(height)), draw.Between(0, float64(width))
		grey, colour := draw.Between(-0.7, 0.7), make([]float64, channels)
		for c := range colour {
			colour[c] = grey + draw.Between(-0.2, 0.2)
		}
		for i, below := range out {
			y, x := i/width%height, i%width
			covers := max(0, min(1, r-math.Hypot(float64(y)-y0, float64(x)-x0)))
			out[i] = float32(covers*colour[i/(height*width)] + (1-covers)*float64(below))
		}
	}
	return out
}

// fixedNoise is the key of the noise, equal in every check.
func fixedNoise() noise.Key {
	return noise.NewKey([32]byte([]byte("ddiff prior verify: fixed noise.")))
}
