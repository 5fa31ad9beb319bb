package job

import (
	"fmt"
	"math"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore"
)

// Doubt is a reason not to believe a restored picture.
type Doubt struct {
	// Setting is the doubted one, as "sigma 0.05", empty for none; Finding is the rest of the sentence on it, without its end.
	Setting, Finding string
	// Level is the noise level of the doubted result, Sigma the one with which the picture may be restored better; Level where none is known.
	Level, Sigma float64
	// Std is the parameter std of a Gaussian blur with which it may be; 0: that of the doubted result. Given is Std of the whole picture, of which the measurement may be a part.
	Std, Given float64
	// Raised: Sigma is larger than Level.
	Raised bool
}

// Doubt looks at an answered restoration of a stored picture. It returns nil for one that explains its measurement and is no rougher than pictures are, and
// where nothing is known: few steps, a measurement that is no picture, or noise that is not white, but for that of JPEG. tried are the doubts that led to this restoration.
func (j *Job) Doubt(e *restore.Engine, tried Tried) *Doubt {
	j.doubted, j.tried = true, tried
	if j.Item.Measurement == nil || j.Op.NotPicture || !j.Metrics.Has(metric.NameResidual) {
		return nil
	}
	if p, err := e.Preset(j.Plan, j.Item.Preset, j.noise().Level()); err == nil && float64(j.Plan.Solver.Steps) < photograph.FewSteps*float64(p.Steps) {
		return nil
	}
	seen := j.observed(j.Problem.Y)
	if judge := j.Op.Doubt; judge != nil {
		if text := judge(j.Op.Params, j.Metrics[metric.NameResidual]+j.noise().Variance(seen)); text != "" {
			return j.doubt(text)
		}
		return nil
	}
	if j.Op.Coloured {
		return nil
	}
	variance, spread := j.noise().Variance(seen), j.noise().Spread(seen)*math.Sqrt(float64(len(seen))/j.independentEntries())
	if variance == 0 {
		return nil
	}
	ratio := j.Metrics[metric.NameResidual]/variance + 1
	last := tried.last()
	if last == nil {
		if d := j.doubtWidth(); d != nil {
			return d
		}
		if d := j.doubtKernel(); d != nil {
			return d
		}
	}
	least := photograph.SmallestMisfit
	if last != nil && !last.Raised && last.Std == 0 {
		least = photograph.SmallestLowered
	}
	raise := func(text string) *Doubt {
		factor := max(photograph.LeastRaise, math.Sqrt(ratio))
		sigma := math.Sqrt(j.Item.Sigma*j.Item.Sigma + (factor*factor-1)*variance)
		if found := j.estimate(); found > sigma && j.Op.Blur {
			sigma = found // a blurred picture has no texture to be taken for noise
		}
		sigma = min(sigma, photograph.LargestSigma)
		if top := tried.tooLarge(); sigma >= top { // between two levels of which neither is the right one
			sigma = math.Sqrt(j.Item.Sigma * top)
		}
		d := j.doubtSigma(text)
		d.Sigma, d.Raised = sigma, true
		return d
	}
	switch {
	case ratio > photograph.LargestMisfit+photograph.Spreads*spread:
		return raise("does not explain the picture")
	case j.rough(last != nil):
		return raise("leads to a pattern that is not in the picture")
	case j.warnOperator() != nil:
		return raise(fmt.Sprintf("is too small for %s, which is wider than the blur of the picture", j.width(j.Op.Params[j.Op.Width])))
	case variance > photograph.SmallSigma*photograph.SmallSigma && j.Item.Photons == 0 && !j.advised() && j.takesDetails(ratio < least-photograph.Spreads*spread):
		d := j.doubtSigma("is more noise than the picture has")
		if last != nil && last.Raised {
			if j.Item.Sigma < photograph.BlindSigma {
				return nil
			}
			return d // what takes so much noise that is not there has another cause
		}
		lower := photograph.Lowering * math.Sqrt(ratio) * j.Item.Sigma
		if found := j.estimate(); found < j.Item.Sigma/photograph.LargestExcess {
			lower = found
		}
		d.Sigma = max(lower, photograph.SmallDenoise)
		return d
	}
	return nil
}

// takesDetails reports whether a restoration takes more than noise from y: its residual is small. In a lossy file, whose compression leaves less noise than was
// estimated, the level of noise in y − A(x) is small, too.
func (j *Job) takesDetails(small bool) bool {
	s := j.Op.Image
	if !j.lossy || !j.Item.SigmaEstimated || !j.Op.Identity || len(j.applied) != len(j.Problem.Y) {
		return small
	}
	taken := photograph.Noisy{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: make([]float32, len(j.applied))}
	for i, v := range j.applied {
		taken.Pix[i] = j.Problem.Y[i] - v
	}
	level, err := photograph.EstimateCompressed(taken)
	if err != nil {
		return small
	}
	return small && level < photograph.LeastTaken*j.Item.Sigma
}

// warnDoubt warns of a result that was not looked at before.
func (j *Job) warnDoubt(e *restore.Engine) {
	if j.doubted {
		return
	}
	if d := j.Doubt(e, nil); d != nil {
		j.tried = Tried{d}
		j.warn(photograph.WarnDoubt, j.tried.offer())
	}
}

// rough compares the bands of the restored picture with those of its measurement.
func (j *Job) rough(strict bool) bool {
	s := j.Op.Image
	if len(j.Problem.Y) != len(j.Solution.X) || j.Op.Masked() || min(s.Height, s.Width) < 1<<photograph.DetailBands {
		return false
	}
	energies := func(values []float32) [photograph.DetailBands]float64 {
		return bandEnergies(&raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: values})
	}
	x, y := energies(j.Solution.X), energies(j.Problem.Y)
	for k := range photograph.DetailBands - 1 {
		most, growth := photograph.Roughest, photograph.Roughening
		switch {
		case strict && k == 0:
			most, growth = photograph.FinestRoughest, photograph.FinestRoughening
		case strict && k == photograph.DetailBands-2:
			growth = photograph.StrictRoughening
		}
		if x[k] > most*x[k+1] && x[k]*y[k+1] > growth*y[k]*x[k+1] {
			return true
		}
	}
	return false
}

// bandEnergies returns the mean squares of the details that each halving of the resolution takes away, the finest first.
func bandEnergies(x *raster.Image) (e [photograph.DetailBands]float64) {
	square := func(x *raster.Image) (sum float64) {
		for _, v := range x.Pix {
			sum += float64(v) * float64(v)
		}
		return sum / float64(len(x.Pix))
	}
	for k := range e {
		half := raster.New(x.Channels, x.Height/2, x.Width/2)
		x = raster.Crop(x, half.Width*2, half.Height*2)
		for c := range x.Channels {
			from, to := x.Plane(c), half.Plane(c)
			for i := range half.Height {
				upper, lower := from[2*i*x.Width:(2*i+1)*x.Width], from[(2*i+1)*x.Width:(2*i+2)*x.Width]
				for l := range half.Width {
					to[i*half.Width+l] = (upper[2*l] + upper[2*l+1] + lower[2*l] + lower[2*l+1]) / 4
				}
			}
		}
		e[k] = square(x) - square(half)
		x = half
	}
	return e
}
