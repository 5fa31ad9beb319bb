package job

import (
	"fmt"
	"math"
	"strings"

	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/metric"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

const (
	// roughest and roughening bound the energy of a band of details over that of the next coarser band, by itself and in parts of the measurement's: pictures
	// have less energy in finer bands, and noise that a restoration invents or raises has more. Where an earlier result was doubted, strict bounds hold for the coarsest band and the
	// finest, in which lies most of a noise that a deblurring magnifies: of 500 results of the grid, seven are above, none better than its picture.
	roughest         = 0.8
	roughening       = 2.5
	strictRoughening = 1.45
	finestRoughest   = 0.6
	finestRoughening = 1.9
	// bands is the number of bands, each of half the resolution of the one before.
	bands = 4
	// leastRaise is the least factor by which a doubted noise level is raised, lowering is the share of the residual's deviation to which one is lowered, smallestLowered bounds the
	// residual of a lowered one, which was taken from a residual with details, as smallestMisfit that of a stated one.
	leastRaise      = 2
	lowering        = 0.7
	smallestLowered = 0.4
	// blindSigma is a noise level from which a raised one must be that of the residual.
	blindSigma = 0.25
	// jpegMisfit is the root mean square of y − A(x) of a JPEG picture above which its tables are not the stated ones: it was 0.017 at most with the right ones, and 0.1 at least with
	// quality 10 in place of 50.
	jpegMisfit = 0.032
	// largestSigma is a noise level that leaves hardly anything of a picture.
	largestSigma = 0.5
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
	if p, err := e.Preset(j.Plan, j.Item.Preset, j.noise().Level()); err == nil && float64(j.Plan.Solver.Steps) < fewSteps*float64(p.Steps) {
		return nil
	}
	seen := j.observed(j.Problem.Y)
	if j.Op.Task == operator.JPEG {
		return j.doubtJPEG(j.Metrics[metric.NameResidual] + j.noise().Variance(seen))
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
	least := smallestMisfit
	if last != nil && !last.Raised && last.Std == 0 {
		least = smallestLowered
	}
	raise := func(text string) *Doubt {
		factor := max(leastRaise, math.Sqrt(ratio))
		sigma := math.Sqrt(j.Item.Sigma*j.Item.Sigma + (factor*factor-1)*variance)
		if found := j.estimate(); found > sigma && (j.Op.Task == operator.GaussianDeblur || j.Op.Task == operator.MotionDeblur) {
			sigma = found // a blurred picture has no texture to be taken for noise
		}
		return &Doubt{Text: j.said(text), Sigma: min(sigma, largestSigma), Raised: true}
	}
	switch {
	case ratio > largestMisfit+spreads*spread:
		return raise("does not explain the picture")
	case j.rough(last != nil):
		return raise("leads to a pattern that is not in the picture")
	case j.warnOperator() != nil:
		return raise("is too small for the stated blur, which is wider than that of the picture")
	case variance > smallSigma*smallSigma && j.Item.Photons == 0 && ratio < least-spreads*spread:
		if last != nil && last.Raised {
			if j.Item.Sigma < blindSigma {
				return nil
			}
			return &Doubt{Text: last.Text, Sigma: j.Item.Sigma} // what takes so much noise that is not there has another cause
		}
		lower := lowering * math.Sqrt(ratio) * j.Item.Sigma
		if found := j.estimate(); found < j.Item.Sigma/largestExcess {
			lower = found
		}
		return &Doubt{Text: j.said("is more noise than the picture has"), Sigma: max(lower, smallDenoise)}
	}
	return nil
}

// doubtJPEG doubts a picture that no compression with the stated tables leaves, by the mean square residual.
func (j *Job) doubtJPEG(residual float64) *Doubt {
	if residual <= jpegMisfit*jpegMisfit {
		return nil
	}
	const levels = 255. / 2 // of a unit
	return &Doubt{Sigma: j.Item.Sigma, Text: fmt.Sprintf("JPEG of quality %g leaves no such picture, by %.2g levels: state the quality of its first compression, or a higher one, and give it neither cropped nor scaled",
		j.Op.Params["quality"], math.Sqrt(residual)*levels)}
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
		j.warn(item.WarnDoubt, d.Text)
	}
}

// rough compares the bands of the restored picture with those of its measurement.
func (j *Job) rough(strict bool) bool {
	s := j.Op.Image
	if len(j.Problem.Y) != len(j.Solution.X) || j.Op.Masked() || min(s.Height, s.Width) < 1<<bands {
		return false
	}
	energies := func(values []float32) [bands]float64 {
		return bandEnergies(&raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: values})
	}
	x, y := energies(j.Solution.X), energies(j.Problem.Y)
	for k := range bands - 1 {
		most, growth := roughest, roughening
		switch {
		case strict && k == 0:
			most, growth = finestRoughest, finestRoughening
		case strict && k == bands-2:
			growth = strictRoughening
		}
		if x[k] > most*x[k+1] && x[k]*y[k+1] > growth*y[k]*x[k+1] {
			return true
		}
	}
	return false
}

// bandEnergies returns the mean squares of the details that each halving of the resolution takes away, the finest first.
func bandEnergies(x *raster.Image) (e [bands]float64) {
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
	if std := j.Item.Params[stdParameter]; std != from.Params[stdParameter] {
		with = append(with, fmt.Sprintf("std %.3g", j.ofOriginal(std)))
	}
	if j.Item.Sigma != from.Sigma || len(with) == 0 {
		with = append(with, fmt.Sprintf("sigma %.3g", j.Item.Sigma))
	}
	j.warn(item.WarnChanged, d.Text+"; restored with "+strings.Join(with, " and "))
}
