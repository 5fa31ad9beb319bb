package job

import (
	"fmt"
	"math"
	"strings"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/restore"
	"ddiff/restore/item"
)

// Doubt is a reason not to believe a restored picture.
type Doubt struct {
	// Text says it in a sentence without its end.
	Text string
	// Sigma is the noise level with which the picture may be restored better; that of the doubted result where none is known.
	Sigma float64
	// Std is the parameter std of a Gaussian blur with which it may be; 0: that of the doubted result.
	Std float64
	// Raised: it is larger than that of the doubted result.
	Raised bool
}

// Doubt looks at an answered restoration of a stored picture. It returns nil for one that explains its measurement and is no rougher than pictures are, and
// where nothing is known: few steps, a measurement that is no picture, or noise that is not white, but for that of JPEG. last is the doubt that led to this restoration, nil for none.
func (j *Job) Doubt(e *restore.Engine, last *Doubt) *Doubt {
	j.doubted = true
	if j.Item.Measurement == nil || j.Op.NotPicture || !j.Metrics.Has(metric.NameResidual) {
		return nil
	}
	if p, err := e.Preset(j.Plan, j.Item.Preset, j.noise().Level()); err == nil && float64(j.Plan.Solver.Steps) < photograph.FewSteps*float64(p.Steps) {
		return nil
	}
	seen := j.observed(j.Problem.Y)
	if judge := j.Op.Doubt; judge != nil {
		if text := judge(j.Op.Params, j.Metrics[metric.NameResidual]+j.noise().Variance(seen)); text != "" {
			return &Doubt{Sigma: j.Item.Sigma, Text: text}
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
		return &Doubt{Text: j.said(text), Sigma: min(sigma, photograph.LargestSigma), Raised: true}
	}
	switch {
	case ratio > photograph.LargestMisfit+photograph.Spreads*spread:
		return raise("does not explain the picture")
	case j.rough(last != nil):
		return raise("leads to a pattern that is not in the picture")
	case j.warnOperator() != nil:
		return raise("is too small for the stated blur, which is wider than that of the picture")
	case variance > photograph.SmallSigma*photograph.SmallSigma && j.Item.Photons == 0 && j.takesDetails(ratio < least-photograph.Spreads*spread):
		if last != nil && last.Raised {
			if j.Item.Sigma < photograph.BlindSigma {
				return nil
			}
			return &Doubt{Text: last.Text, Sigma: j.Item.Sigma} // what takes so much noise that is not there has another cause
		}
		lower := photograph.Lowering * math.Sqrt(ratio) * j.Item.Sigma
		if found := j.estimate(); found < j.Item.Sigma/photograph.LargestExcess {
			lower = found
		}
		return &Doubt{Text: j.said("is more noise than the picture has"), Sigma: max(lower, photograph.SmallDenoise)}
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
		if d.Std != 0 {
			d.Text += fmt.Sprintf("; try std %.2g", j.ofOriginal(d.Std))
		} else if d.Sigma != j.Item.Sigma {
			d.Text += fmt.Sprintf("; try sigma %.2g", d.Sigma)
		}
		j.warn(photograph.WarnDoubt, d.Text)
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

// said is a sentence on the noise level.
func (j *Job) said(text string) string { return fmt.Sprintf("sigma %.3g %s", j.Item.Sigma, text) }

// Changed notes that settings were changed from those of an earlier restoration, which was doubted.
func (j *Job) Changed(from *item.Item, d *Doubt) {
	var with []string
	if std := j.Item.Params[j.Op.Width]; std != from.Params[j.Op.Width] {
		with = append(with, fmt.Sprintf("std %.3g", j.ofOriginal(std)))
	}
	if j.Item.Sigma != from.Sigma || len(with) == 0 {
		with = append(with, fmt.Sprintf("sigma %.3g", j.Item.Sigma))
	}
	j.warn(photograph.WarnChanged, d.Text+"; restored with "+strings.Join(with, " and "))
}
