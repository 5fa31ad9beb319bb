package job

import (
	"fmt"
	"math"
	"slices"

	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/metric"
	"ddiff/restore/noiselevel"
	"ddiff/restore/operator"
	"ddiff/restore/operator/drawfile"
)

// The bounds of warnings, which docs/restore.md describes.
const (
	// largestMisfit and smallestMisfit bound the mean square residual over the variance of the noise. A restoration fits a part of the noise, so that
	// the ratio may be well below 1.
	largestMisfit  = 1.5
	smallestMisfit = 0.2
	// spreads is the number of standard deviations of the mean square of pure noise by which the bounds are widened.
	spreads = 5
	// flatShare is the contrast of a flat restoration in parts of that of its measurement without noise, flatContrast that of one
	// whose measurement is no picture. The contrast is the standard deviation of the pixels about the mean of their channel.
	flatShare    = 0.2
	flatContrast = 0.02
	// largestExcess is the largest stated noise level of a picture over the estimated one. Denoising with 2.5 times the noise loses details.
	// largestLack is the largest estimated one over the stated one in denoise; elsewhere estimates are too high more often.
	largestExcess = 2
	largestLack   = 1.5
	// smallSigma is a noise level of 2.5 of 255 levels, which is usual for a picture with hardly any noise. Where sigma is not larger, a restoration that fits
	// all of the noise is no worse for it. Denoising, which takes away nothing but noise, loses up to 13 dB with it there, so that its limit is smallDenoise.
	smallSigma   = 0.02
	smallDenoise = 0.005
	// hardlyAny is an estimated noise level that changes hardly a pixel of 8 bits in denoise.
	hardlyAny = 0.01
	// weakest is the largest singular value, in noise levels and at most strongest, of the coefficients in which a blurred measurement is noise: fine
	// details of photographs have an amplitude below 0.1. largestSignal bounds their mean square over the variance of the noise, and fewestWeak their number.
	weakest       = 2.5
	strongest     = 0.25
	largestSignal = 1.1
	fewestWeak    = 100
	// largestClipped is the share of black and white samples, rarerClipped that of the rarer ones: photographs with noise had at most 0.34 of both, pages
	// of text, some of which are better than their restorations, at least 0.5 (docs/data/restore-clipped.csv).
	largestClipped = 0.4
	rarerClipped   = 0.01
	// greenShare bounds the mean square difference of the two green samples, in means over blocks of greenBlock×greenBlock squares, over that of the red and the
	// blue one: it is at most 1.2 in the pictures of examples, pages in grey, and at most 0.16 in photographs with colours.
	greenBlock = 4
	greenShare = 4
	// largestLost is the share of lost pixels from which a mask may be inverted.
	largestLost = 0.5
	// widestFilled is the width of a hole, in parts of the picture's shorter side, above which a smooth fill is closer to the truth on more photographs than
	// not: with a quarter on 9 of 16, with half on 12 of 16 (docs/data/smooth-fill.csv).
	widestFilled = 1. / 3
	// fewSteps is the share of the preset's steps below which there are few.
	fewSteps = 0.5
)

// warnResult appends the warnings of an answered item, for which e was used.
func (j *Job) warnResult(e *restore.Engine) {
	j.warnDoubt(e)
	m := j.Metrics
	found := j.estimate()
	for _, w := range []*item.Warning{j.warnResidual(m, found), warnWorse(m), j.warnSigma(found), j.warnOperator(), j.warnFilter(), j.warnFlat(), j.warnClipped(), j.warnMask(), j.warnGuess(), j.warnTurned()} {
		if w != nil {
			j.Warnings = append(j.Warnings, *w)
		}
	}
	p, err := e.Preset(j.Plan, j.Item.Preset, j.noise().Level())
	if err != nil {
		return // this version does not know the preset, whose name is not part of the identity
	}
	if steps := j.Plan.Solver.Steps; float64(steps) < fewSteps*float64(p.Steps) {
		text := fmt.Sprintf("%d steps, the preset %s has %d", steps, j.Item.Preset, p.Steps)
		if !p.Row {
			text = fmt.Sprintf("%d steps, the default of %s is %d; the preset %s has no settings of it for this task", steps, j.Plan.Solver.Method, p.Steps, j.Item.Preset)
		}
		j.warn(item.WarnSteps, text)
	}
	if p.Foreign {
		j.warn(item.WarnPreset, fmt.Sprintf("the preset %s was chosen for another prior; ddiff tune finds settings for this one", j.Item.Preset))
	}
}

func (j *Job) warn(code, text string) {
	j.Warnings = append(j.Warnings, item.Warning{Code: code, Text: text})
}

// warnResidual compares the mean square residual with its expectation for the true image, the variance of the noise. Where the noise is not white, as
// the rounding in a JPEG file, A includes it: the variance bounds the residual, which may be 0. A small residual is sound where little noise is stated.
func (j *Job) warnResidual(m item.Metrics, found float64) *item.Warning {
	seen := j.observed(j.Problem.Y)
	variance, name := j.noise().Variance(seen), "sigma²"
	residual := m.Of(metric.NameResidual)
	if math.IsNaN(residual) || variance == 0 {
		return nil
	}
	if j.Item.Photons > 0 {
		name = "the variance of the noise"
	}
	entries := j.independentEntries()
	ratio, spread := residual/variance+1, j.noise().Spread(seen)*math.Sqrt(float64(len(seen))/entries)
	cause := "the restored image does not explain its measurement"
	switch {
	case ratio > largestMisfit+spreads*spread:
	case !j.Op.Coloured && variance > smallSigma*smallSigma && ratio < smallestMisfit-spreads*spread:
		cause = "the restored image fits the noise, or sigma is too large"
		if j.Item.Photons > 0 {
			cause = "the restored image fits the noise, or photons are too few"
		}
		if j.Item.Sigma > largestExcess*found {
			cause += "; give a smaller sigma, or auto"
		}
	default:
		return nil
	}
	return &item.Warning{
		Code: item.WarnResidual,
		Text: fmt.Sprintf("the mean square residual is %.3g times %s, 1 ± %.2g is expected for the true image over %.0f entries: %s", ratio, name, spread, entries, cause),
	}
}

// estimate returns the noise level found in a stored picture whose level was stated; NaN where there is no estimate: the noise is not white, the file is
// compressed with loss, or the picture too small.
func (j *Job) estimate() float64 {
	if j.Item.Measurement == nil || j.Item.SigmaEstimated || j.Item.Photons > 0 || j.lossy || j.Op.NotPicture || j.Op.Coloured || j.Op.Own != nil {
		return math.NaN()
	}
	found, err := noiselevel.Estimate(j.noisy())
	if err != nil {
		return math.NaN()
	}
	if j.Op.Task != operator.Denoise && j.Item.Sigma <= largestExcess*found {
		return found // a larger estimate would change no warning
	}
	return max(found, noiselevel.EstimateCorrelated(j.noisy()))
}

// noisy is a stored picture for an estimate.
func (j *Job) noisy() noiselevel.Picture {
	dims := j.Op.Measurement
	y := noiselevel.Picture{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y}
	if p := j.Item.Picture; p != nil {
		y.Step = j.level(p)
	}
	y.Observed = j.Problem.Weights
	if j.Op.Masked() {
		y.Observed = j.draw.Data
	}
	if j.Op.Task == operator.Demosaic {
		y = y.Mosaic()
	}
	return y
}

// correlated reports whether the level was estimated of noise that neighbouring pixels share, shot whether of noise that grows with the brightness.
func (j *Job) correlated() bool {
	return j.estimatedLossless() && noiselevel.EstimateCorrelated(j.noisy()) > 0
}

func (j *Job) shot() bool {
	if !j.estimatedLossless() {
		return false
	}
	_, shot, err := noiselevel.EstimateShot(j.noisy())
	return err == nil && shot
}

func (j *Job) estimatedLossless() bool {
	return j.Item.SigmaEstimated && !j.lossy && len(j.Op.Measurement) == 3 && j.Op.Own == nil
}

// warnSigma compares the stated noise level with that of the picture. The estimate in a file with lossy compression has the noise and texture of its brightness.
func (j *Job) warnSigma(found float64) *item.Warning {
	var text string
	switch sigma := j.Item.Sigma; {
	case j.lossy && j.Item.SigmaEstimated && (j.Op.Masked() || j.Op.Task == operator.Demosaic):
		text = fmt.Sprintf("sigma %.3g was estimated in a JPEG or lossy WebP file, whose compression hides noise: it may be far too low; give a number", sigma)
	case j.lossy && j.Item.SigmaEstimated:
		text = fmt.Sprintf("sigma %.2g is the noise and the fine texture in the brightness of a compressed file: if details go, give half as much, --sigma %.2g", sigma, sigma/2)
	case j.lossy && j.Item.Photons == 0 && (j.Op.Task == operator.GaussianDeblur || j.Op.Task == operator.MotionDeblur) && sigma < hardlyAny:
		text = fmt.Sprintf("sigma is %.3g, below the errors of the file's compression, which deblurring magnifies; give a larger sigma, such as %g, or auto", sigma, smallSigma)
	case sigma > largestExcess*found && (sigma > smallSigma || sigma > smallDenoise && j.Op.Task == operator.Denoise):
		if found < hardlyAny && sigma <= j.coarseNoise() { // as advised below
			return nil
		}
		text = fmt.Sprintf("sigma is %.3g, the noise of the picture is about %.3g: details may go with the noise; give a smaller sigma, or auto", sigma, found)
	case j.Op.Task == operator.Denoise && found > largestLack*sigma && found > smallSigma:
		text = fmt.Sprintf("sigma is %.3g, the noise of the picture is about %.3g, unless its texture is fine: noise may remain; give a larger sigma, or auto", sigma, found)
	case j.Op.Task == operator.Denoise && j.Item.SigmaEstimated && sigma < hardlyAny:
		text = fmt.Sprintf("hardly any white noise was found, %.3g, so that the picture stays as it is", sigma)
		if coarse := j.coarseNoise(); coarse > hardlyAny {
			text += fmt.Sprintf("; if you see coarse noise, as of a JPEG file that was saved as another, give --sigma %.2g, the variation of its flattest parts", coarse)
		}
	case j.correlated():
		text = fmt.Sprintf("neighbouring pixels share their noise, as after demosaicing or scaling: sigma %.2g is that of its coarse part; if details go, give half as much, --sigma %.2g", sigma, sigma/2)
	case j.shot():
		text = fmt.Sprintf("the noise grows with the brightness, as that of light does: sigma %.2g is its mean; if it remains in bright parts, give a larger one", sigma)
	default:
		return nil
	}
	return &item.Warning{Code: item.WarnSigma, Text: text}
}

// coarseNoise returns the variation of the brightness in the flattest parts of a stored picture, which may be noise in spite of a smaller estimate; 0 where it is not known.
func (j *Job) coarseNoise() float64 {
	dims := j.Op.Measurement
	if len(dims) != 3 || j.Op.Masked() || j.Op.Task == operator.Demosaic {
		return 0
	}
	found, err := noiselevel.EstimateCompressed(noiselevel.Picture{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y})
	if err != nil {
		return 0
	}
	return found
}

// level is the difference of neighbouring values of a picture.
func (j *Job) level(p *item.Picture) float64 {
	if r := j.Item.MeasurementRange; r != nil && p.Bits <= 16 {
		return 2 / (r[1] - r[0])
	}
	return 2 / (math.Exp2(float64(p.Bits)) - 1)
}

// warnOperator looks for more than noise in a stored measurement where its Gaussian blur leaves nothing: the blur is stated too wide. A restoration
// raises that to rings, which fit the measurement, so that the residual does not show them.
func (j *Job) warnOperator() *item.Warning {
	if j.Op.Task != operator.GaussianDeblur || j.Item.Measurement == nil || j.Item.Photons > 0 {
		return nil
	}
	d, err := j.Op.SVD()
	if err != nil {
		return nil
	}
	variance := j.Item.Sigma * j.Item.Sigma
	if p := j.Item.Picture; p != nil {
		variance += j.level(p) * j.level(p) / 12
	}
	found, entries := d.Weak(j.Problem.Y, min(weakest*math.Sqrt(variance), strongest))
	if entries < fewestWeak || variance == 0 {
		return nil
	}
	independent := float64(entries) * j.independentEntries() / float64(len(j.Problem.Y))
	ratio, spread := found/variance, math.Sqrt(2/independent)
	if ratio <= largestSignal+spreads*spread {
		return nil
	}
	return &item.Warning{
		Code: item.WarnOperator,
		Text: fmt.Sprintf("where the stated blur leaves nothing the measurement has %.3g times sigma², 1 ± %.2g is expected of noise: rings are likely; state a narrower blur, or a larger sigma", ratio, spread),
	}
}

// warnFilter compares the samples of a stored mosaic that stand opposite each other: two of one colour differ less than two of different colours.
func (j *Job) warnFilter() *item.Warning {
	if j.Op.Task != operator.Demosaic || j.Item.Measurement == nil {
		return nil
	}
	y, width := j.Problem.Y, j.Op.Image.Width
	var falling, rising float64 // along the two diagonals
	for i := 0; i+2*greenBlock <= j.Op.Image.Height; i += 2 * greenBlock {
		for k := 0; k+2*greenBlock <= width; k += 2 * greenBlock {
			var f, r float64
			for square := range greenBlock * greenBlock {
				at := (i+square/greenBlock*2)*width + k + square%greenBlock*2
				f += float64(y[at] - y[at+width+1])
				r += float64(y[at+1] - y[at+width])
			}
			falling, rising = falling+f*f, rising+r*r
		}
	}
	green, other := rising, falling
	if j.Op.Params["red_row"] != j.Op.Params["red_column"] {
		green, other = falling, rising
	}
	if green <= greenShare*other {
		return nil
	}
	return &item.Warning{
		Code: item.WarnOperator,
		Text: "the samples of the stated green pixels differ more than those of the red and blue ones: red_row or red_column is likely to be the other one",
	}
}

// independentEntries returns the number m of independent entries whose mean square has the variance of that of the observed entries,
// 2·sigma⁴/m. The channels of a grey picture are equal, and mirrored pixels repeat others: with the multiplicities c of n entries, m is n²/Σc².
func (j *Job) independentEntries() float64 {
	entries := float64(len(j.observed(j.Problem.Y)))
	p, dims := j.Item.Picture, j.Op.Measurement
	if p == nil || len(dims) != 3 {
		return entries
	}
	if p.Grey {
		entries /= float64(dims[0])
	}
	// Of an axis of n entries the mirrored ones, n minus own, occur twice.
	mirrored := func(n, own int) float64 { return float64(n) / float64(3*n-2*own) }
	return entries * mirrored(dims[1], p.Height*dims[1]/j.Op.Image.Height) * mirrored(dims[2], p.Width*dims[2]/j.Op.Image.Width)
}

func warnWorse(m item.Metrics) *item.Warning {
	psnr, degraded := m.Of(metric.NamePSNR), m.Of(metric.Degraded(metric.NamePSNR))
	const least = 0.01             // dB: a smaller loss is one of rounding, as where a method returns the measurement
	if !(degraded-psnr >= least) { // or undefined
		return nil
	}
	return &item.Warning{Code: item.WarnWorse, Text: fmt.Sprintf("PSNR %.2f dB, the measurement has %.2f dB", psnr, degraded)}
}

// warnFlat compares the contrast of the restored image with that of its measurement. Of a measurement with as much noise as
// contrast it says nothing.
func (j *Job) warnFlat() *item.Warning {
	img := j.Restored()
	found := metric.Contrast(img.Pix, img.Channels)
	base := j.baseline
	if base == nil {
		base = j.Op.Baseline(j.Problem.Y)
	}
	if base == nil || j.Op.Own != nil { // whose y may have another scale
		if found >= flatContrast {
			return nil
		}
		return &item.Warning{Code: item.WarnFlat, Text: fmt.Sprintf("the restored image is nearly flat: its contrast is %.2g", found)}
	}
	seen := base.Pix
	if len(seen) == len(j.Problem.Y) {
		seen = j.Op.Observed(seen, j.Problem.Draw)
	}
	want := metric.Contrast(seen, base.Channels)
	variance := j.noise().Variance(seen)
	clean := math.Sqrt(max(0, want*want-variance))
	if clean*clean < variance || found >= flatShare*clean {
		return nil
	}
	return &item.Warning{Code: item.WarnFlat, Text: fmt.Sprintf("the restored image is nearly flat: its contrast is %.2g, that of the measurement %.2g", found, clean)}
}

// warnDraw says what was repaired in the file of a mask or kernel, and what is doubtful.
func (j *Job) warnDraw(name string, f *drawfile.File) {
	code := item.WarnMask
	if name == drawKernel {
		code = item.WarnKernel
	}
	for _, text := range f.Notes {
		j.warn(code, "the "+name+": "+text)
	}
	if f.Doubt != "" {
		j.warn(code, "the "+name+": "+f.Doubt)
	}
}

// warnTurned says that a stored picture's kernel is turned, or that the picture does not tell.
func (j *Job) warnTurned() *item.Warning {
	found, least := j.turned()
	switch {
	case found < -least:
		return nil
	case found >= least && !j.lossy:
		return &item.Warning{Code: item.WarnKernel, Text: isTurned}
	}
	return &item.Warning{Code: item.WarnKernel, Text: "the picture does not tell whether the kernel is turned by 180°: if the result has echoes, try " + turnedKernel}
}

// warnMask doubts a mask of a stored picture that loses more pixels than it leaves.
func (j *Job) warnMask() *item.Warning {
	doubted := slices.ContainsFunc(j.Warnings, func(w item.Warning) bool { return w.Code == item.WarnMask })
	if j.Item.Measurement == nil || j.Item.Mask == nil || doubted {
		return nil
	}
	lost, mask := 0, j.maskDraw()
	for _, v := range mask.Data {
		if v == 0 {
			lost++
		}
	}
	share := float64(lost) / float64(len(mask.Data))
	if share <= largestLost {
		return nil
	}
	return &item.Warning{Code: item.WarnMask, Text: fmt.Sprintf("the mask drops %.0f %% of the pixels: white is observed and black is lost; is it inverted?", 100*share)}
}

// warnGuess names what the measurement of a stored picture says nothing about, where no prior that was measured knows it: colours, and the content of wide holes.
func (j *Job) warnGuess() *item.Warning {
	text := ""
	switch {
	case j.Item.Measurement == nil:
	case j.Op.Task == operator.Colorize:
		text = "the colours are a guess: with the bundled prior the grey picture was closer to the truth on 18 of 38 photographs; see docs/restore.md"
	case j.Item.Mask != nil:
		mask := j.maskDraw()
		height, width := mask.Dims[0], mask.Dims[1]
		if hole := drawfile.WidestHole(mask.Data, width); float64(hole) > widestFilled*float64(min(height, width)) {
			text = fmt.Sprintf("the mask has a hole %d pixels wide, whose content is a guess: in such holes a smooth fill was closer to the truth on 12 of 16 photographs; see docs/restore.md", hole)
		}
	}
	if text == "" {
		return nil
	}
	return &item.Warning{Code: item.WarnGuess, Text: text}
}

// warnClipped counts the black and white samples of a stored picture with noise, which is cut off there: y is closer to the truth than sigma says. Pictures that are
// black or white alone, as at night, are restored well.
func (j *Job) warnClipped() *item.Warning {
	if j.Item.Picture == nil || j.Item.Sigma < smallSigma || j.Op.Task != operator.Denoise {
		return nil
	}
	black, white, all := 0, 0, float64(len(j.Problem.Y))
	for _, v := range j.Problem.Y {
		switch v {
		case -1:
			black++
		case 1:
			white++
		}
	}
	share := float64(black+white) / all
	if share <= largestClipped || float64(min(black, white)) < rarerClipped*all {
		return nil
	}
	return &item.Warning{
		Code: item.WarnClipped,
		Text: fmt.Sprintf("%.0f %% of the samples are black or white, where noise is cut off: the file itself may be closer to the truth, as with pages of text; see docs/restore.md", 100*share),
	}
}
