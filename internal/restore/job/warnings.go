package job

import (
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/photograph"
	"ddiff/restore"
	"ddiff/restore/item"
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
	if steps := j.Plan.Solver.Steps; float64(steps) < photograph.FewSteps*float64(p.Steps) {
		text := fmt.Sprintf("%d steps, the preset %s has %d", steps, j.Item.Preset, p.Steps)
		if !p.Row {
			text = fmt.Sprintf("%d steps, the default of %s is %d; the preset %s has no settings of it for this task", steps, j.Plan.Solver.Method, p.Steps, j.Item.Preset)
		}
		j.warn(photograph.WarnSteps, text)
	}
	if p.Foreign {
		j.warn(photograph.WarnPreset, fmt.Sprintf("the preset %s was chosen for another prior; ddiff tune finds settings for this one", j.Item.Preset))
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
	case ratio > photograph.LargestMisfit+photograph.Spreads*spread:
	case !j.Op.Coloured && variance > photograph.SmallSigma*photograph.SmallSigma && ratio < photograph.SmallestMisfit-photograph.Spreads*spread:
		cause = "the restored image fits the noise, or sigma is too large"
		if j.Item.Photons > 0 {
			cause = "the restored image fits the noise, or photons are too few"
		}
		if j.tried.refuses(0) { // a smaller level was tried
			cause = "the restored image fits the noise"
		} else if j.Item.Sigma > photograph.LargestExcess*found {
			cause += "; give a smaller sigma, or auto"
		}
	default:
		return nil
	}
	return &item.Warning{
		Code: photograph.WarnResidual,
		Text: fmt.Sprintf("the mean square residual is %.3g times %s, 1 ± %.2g is expected for the true image over %.0f entries: %s", ratio, name, spread, entries, cause),
	}
}

// estimate returns the noise level found in a stored picture whose level was stated; NaN where there is no estimate: the noise is not white, the file is
// compressed with loss, or the picture too small.
func (j *Job) estimate() float64 {
	if j.Item.Measurement == nil || j.Item.SigmaEstimated || j.Item.Photons > 0 || j.lossy || j.Op.NotPicture || j.Op.Coloured || j.Op.Own != nil {
		return math.NaN()
	}
	found, err := photograph.EstimateNoise(j.noisy())
	if err != nil {
		return math.NaN()
	}
	if !j.Op.Identity && j.Item.Sigma <= photograph.LargestExcess*found {
		return found // a larger estimate would change no warning
	}
	return max(found, photograph.EstimateCorrelated(j.noisy()))
}

// noisy is a stored picture for an estimate.
func (j *Job) noisy() photograph.Noisy {
	dims := j.Op.Measurement
	y := photograph.Noisy{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y}
	if p := j.Item.Picture; p != nil {
		y.Step = j.level(p)
	}
	y.Observed = j.Problem.Weights
	if j.Op.Masked() {
		y.Observed = j.draw.Data
	}
	if j.Op.Mosaic {
		y = y.Mosaic()
	}
	return y
}

// correlated reports whether the level was estimated of noise that neighbouring pixels share, shot whether of noise that grows with the brightness.
func (j *Job) correlated() bool {
	return j.estimatedLossless() && photograph.EstimateCorrelated(j.noisy()) > 0
}

func (j *Job) shot() bool {
	if !j.estimatedLossless() {
		return false
	}
	_, shot, err := photograph.EstimateShot(j.noisy())
	return err == nil && shot
}

func (j *Job) estimatedLossless() bool {
	return j.Item.SigmaEstimated && !j.lossy && len(j.Op.Measurement) == 3 && j.Op.Own == nil
}

// warnSigma compares the stated noise level with that of the picture. The estimate in a file with lossy compression has the noise and texture of its brightness.
func (j *Job) warnSigma(found float64) *item.Warning {
	var text string
	switch sigma := j.Item.Sigma; {
	case j.lossy && j.Item.SigmaEstimated && (j.Op.Masked() || j.Op.Mosaic):
		text = fmt.Sprintf("sigma %.3g was estimated in a JPEG or lossy WebP file, whose compression hides noise: it may be far too low; give a number", sigma)
	case j.lossy && j.Item.SigmaEstimated:
		text = fmt.Sprintf("sigma %.2g is the coarse noise, and texture, of a compressed file", sigma) + j.halve()
	case j.lossy && j.Item.Photons == 0 && j.Op.Blur && sigma < photograph.HardlyAny:
		text = fmt.Sprintf("sigma is %.3g, below the errors of the file's compression, which deblurring magnifies", sigma) + j.unlessTried(photograph.SmallSigma, fmt.Sprintf("give a larger sigma, such as %g, or auto", photograph.SmallSigma))
	case sigma > photograph.LargestExcess*found && (sigma > photograph.SmallSigma || sigma > photograph.SmallDenoise && j.Op.Identity):
		if found < photograph.HardlyAny && sigma <= j.coarseNoise() { // as advised below
			return nil
		}
		text = fmt.Sprintf("sigma is %.3g, the noise of the picture is about %.3g: details may go with the noise", sigma, found) + j.unlessTried(found, "give a smaller sigma, or auto")
	case j.Op.Identity && found > photograph.LargestLack*sigma && found > photograph.SmallSigma:
		text = fmt.Sprintf("sigma is %.3g, the noise of the picture is about %.3g, unless its texture is fine: noise may remain", sigma, found) + j.unlessTried(found, "give a larger sigma, or auto")
	case j.Op.Identity && j.Item.SigmaEstimated && sigma < photograph.HardlyAny:
		text = fmt.Sprintf("hardly any white noise was found, %.3g, so that the picture stays as it is", sigma)
		if coarse := j.coarseNoise(); coarse > photograph.HardlyAny {
			text += j.unlessTried(coarse, fmt.Sprintf("if you see coarse noise, as of a JPEG file that was saved as another, give --sigma %.2g, the variation of its flattest parts", coarse))
		}
	case j.correlated():
		text = fmt.Sprintf("neighbouring pixels share their noise, as after demosaicing or scaling: sigma %.2g is that of its coarse part", sigma) + j.halve()
	case j.shot():
		text = fmt.Sprintf("the noise grows with the brightness, as that of light does: sigma %.2g is its mean", sigma) + j.unlessTried(2*sigma, "if it remains in bright parts, give a larger one")
	default:
		return nil
	}
	return &item.Warning{Code: photograph.WarnSigma, Text: text}
}

// halve advises half the noise level where that takes less of the texture; a blur magnifies what remains.
func (j *Job) halve() string {
	half := j.Item.Sigma / 2
	if j.Op.Blur || half < photograph.HardlyAny {
		return ""
	}
	return j.unlessTried(half, fmt.Sprintf("if details go, give half as much, --sigma %.2g", half))
}

// advised reports whether the noise level is the one that warnSigma advises for coarse noise, which other estimates do not find: a person sees it.
func (j *Job) advised() bool {
	return j.Op.Identity && !j.lossy && !j.Item.SigmaEstimated && j.Item.Sigma == j.coarseNoise()
}

// coarseNoise returns the variation of the brightness in the flattest parts of a stored picture, which may be noise in spite of a smaller estimate; 0 where it is not known, or texture.
func (j *Job) coarseNoise() float64 {
	dims := j.Op.Measurement
	if len(dims) != 3 || j.Op.Masked() || j.Op.Mosaic || min(dims[1], dims[2]) < photograph.LeastCoarseSide {
		return 0
	}
	found, err := photograph.EstimateCompressed(photograph.Noisy{Channels: dims[0], Height: dims[1], Width: dims[2], Pix: j.Problem.Y})
	if err != nil || found > photograph.MostCoarse {
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
	if j.Op.Width == "" || j.Item.Measurement == nil || j.Item.Photons > 0 {
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
	found, entries := d.Weak(j.Problem.Y, min(photograph.Weakest*math.Sqrt(variance), photograph.Strongest))
	if entries < photograph.FewestWeak || variance == 0 {
		return nil
	}
	independent := float64(entries) * j.independentEntries() / float64(len(j.Problem.Y))
	ratio, spread := found/variance, math.Sqrt(2/independent)
	if ratio <= photograph.LargestSignal+photograph.Spreads*spread {
		return nil
	}
	return &item.Warning{
		Code: photograph.WarnOperator,
		Text: fmt.Sprintf("where a blur of %s leaves nothing the measurement has %.3g times sigma², 1 ± %.2g is expected of noise: rings are likely; give a smaller %s, or a larger sigma",
			j.width(j.Op.Params[j.Op.Width]), ratio, spread, j.Op.Width),
	}
}

// warnFilter compares the samples of a stored mosaic that stand opposite each other: two of one colour differ less than two of different colours.
func (j *Job) warnFilter() *item.Warning {
	if !j.Op.Mosaic || j.Item.Measurement == nil {
		return nil
	}
	y, width := j.Problem.Y, j.Op.Image.Width
	var falling, rising float64 // along the two diagonals
	for i := 0; i+2*photograph.GreenBlock <= j.Op.Image.Height; i += 2 * photograph.GreenBlock {
		for k := 0; k+2*photograph.GreenBlock <= width; k += 2 * photograph.GreenBlock {
			var f, r float64
			for square := range photograph.GreenBlock * photograph.GreenBlock {
				at := (i+square/photograph.GreenBlock*2)*width + k + square%photograph.GreenBlock*2
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
	if green <= photograph.GreenShare*other {
		return nil
	}
	return &item.Warning{
		Code: photograph.WarnOperator,
		Text: fmt.Sprintf("with red_row %g and red_column %g the green samples differ more than the red and blue ones: one of the two is likely to be wrong", j.Op.Params["red_row"], j.Op.Params["red_column"]),
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
	return &item.Warning{Code: photograph.WarnWorse, Text: fmt.Sprintf("PSNR %.2f dB, the measurement has %.2f dB", psnr, degraded)}
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
		if found >= photograph.FlatContrast {
			return nil
		}
		return &item.Warning{Code: photograph.WarnFlat, Text: fmt.Sprintf("the restored image is nearly flat: its contrast is %.2g", found)}
	}
	seen := base.Pix
	if len(seen) == len(j.Problem.Y) {
		seen = j.Op.Observed(seen, j.Problem.Draw)
	}
	want := metric.Contrast(seen, base.Channels)
	variance := j.noise().Variance(seen)
	clean := math.Sqrt(max(0, want*want-variance))
	if clean*clean < variance || found >= photograph.FlatShare*clean {
		return nil
	}
	return &item.Warning{Code: photograph.WarnFlat, Text: fmt.Sprintf("the restored image is nearly flat: its contrast is %.2g, that of the measurement %.2g", found, clean)}
}

// warnDraw says what was repaired in the file of a mask or kernel, and what is doubtful.
func (j *Job) warnDraw(name string, f *photograph.DrawFile) {
	code := photograph.WarnMask
	if name == drawKernel {
		code = photograph.WarnKernel
	}
	for _, text := range f.Notes {
		j.warn(code, "the "+name+": "+text)
	}
	if f.Doubt != "" {
		j.drawDoubt = "the " + name + ": " + f.Doubt
		j.warn(code, j.drawDoubt)
	}
}

// warnTurned says that a stored picture's kernel is turned, or that the picture does not tell.
func (j *Job) warnTurned() *item.Warning {
	found, least := j.turned()
	switch {
	case found < -least:
		return nil
	case found >= least && !j.lossy:
		return &item.Warning{Code: photograph.WarnKernel, Text: j.isTurned()}
	}
	return &item.Warning{Code: photograph.WarnKernel, Text: "the picture does not tell whether the kernel is turned by 180°: if the result has echoes, try " + j.otherForm()}
}

// warnMask doubts a mask of a stored picture that loses more pixels than it leaves.
func (j *Job) warnMask() *item.Warning {
	doubted := slices.ContainsFunc(j.Warnings, func(w item.Warning) bool { return w.Code == photograph.WarnMask })
	if j.Item.Measurement == nil || j.Item.Mask == nil || j.Item.MaskShows != "" || doubted {
		return nil
	}
	lost, mask := 0, j.maskDraw()
	for _, v := range mask.Data {
		if v == 0 {
			lost++
		}
	}
	share := float64(lost) / float64(len(mask.Data))
	if share <= photograph.LargestLost {
		return nil
	}
	return &item.Warning{Code: photograph.WarnMask, Text: fmt.Sprintf("the mask drops %.0f %% of the pixels: is it inverted? give --mask-shows lost if white shows the lost pixels, or --mask-shows kept", 100*share)}
}

// warnGuess names what the measurement of a stored picture says nothing about, where no prior that was measured knows it: colours, and the content of wide holes.
func (j *Job) warnGuess() *item.Warning {
	text := ""
	switch {
	case j.Item.Measurement == nil:
	case j.Op.Guess != "":
		text = j.Op.Guess
	case j.Item.Mask != nil:
		mask := j.maskDraw()
		height, width := mask.Dims[0], mask.Dims[1]
		if hole := photograph.WidestHole(mask.Data, width); float64(hole) > photograph.WidestFilled*float64(min(height, width)) {
			text = fmt.Sprintf("the mask has a hole %d pixels wide, whose content is a guess: in such holes a smooth fill was closer to the truth on 12 of 16 photographs; see docs/restore.md", hole)
		}
	}
	if text == "" {
		return nil
	}
	return &item.Warning{Code: photograph.WarnGuess, Text: text}
}

// warnClipped counts the black and white samples of a stored picture with noise, which is cut off there: y is closer to the truth than sigma says. Pictures that are
// black or white alone, as at night, are restored well.
func (j *Job) warnClipped() *item.Warning {
	if j.Item.Picture == nil || j.Item.Sigma < photograph.SmallSigma || !j.Op.Identity {
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
	if share <= photograph.LargestClipped || float64(min(black, white)) < photograph.RarerClipped*all {
		return nil
	}
	return &item.Warning{
		Code: photograph.WarnClipped,
		Text: fmt.Sprintf("%.0f %% of the samples are black or white, where noise is cut off: the file itself may be closer to the truth, as with pages of text; see docs/restore.md", 100*share),
	}
}
