package method

import (
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// ddiffNatural is tuned for the bundled prior: few steps, a larger b than the paper's, an earlier end of the added noise, and the
// gradient of the norm, which unit did not improve in a comparison (docs/tuning.md). Box inpainting adds no noise: in the hole, no gradient
// corrects an error that noise causes.
//
// The settings of the paper's tasks have the highest mean PSNR on the bundled photographs at 128×128 with sigma 0.05, so
// figures on those photographs are those of tuned data. The steps of super-resolution, and noise, answer and gradient at saturated entries of HDR were chosen
// on photographs of [tuningPhotographs], see docs/tuning.md.
func ddiffNatural() []Row {
	row := func(task string, steps int, gamma0, b float64, t0 parameter.Value, rule string) Row {
		return Row{"natural", task, steps, map[string]parameter.Value{
			"gamma0": parameter.Number(gamma0), "b": parameter.Number(b), "t0": t0, "sigma_rule": parameter.Word(rule),
		}, photographs()}
	}
	none, one, early := parameter.Word(parameter.None), parameter.Number(1), parameter.Number(300)
	enlarge := row(operator.SuperResolution, 75, 45, 0.5, one, sigmaFull)
	enlarge.ChosenOn = union(enlarge.ChosenOn, fourPhotographs())
	hdr := row(operator.HDR, 150, 4, 1, early, sigmaDDPM)
	hdr.Values["answer"], hdr.Values["recover"] = parameter.Word(answerPrimal), parameter.Word(recoverBeyond)
	hdr.ChosenOn = append(hdr.ChosenOn, tuningPhotographs()...)
	return append([]Row{
		enlarge,
		row(operator.InpaintBox, 100, 5, 1, none, sigmaDDPM),
		row(operator.InpaintRandom, 100, 5, 1, early, sigmaDDPM),
		row(operator.GaussianDeblur, 120, 8, 1.5, early, sigmaDDPM),
		row(operator.MotionDeblur, 200, 8, 1.5, early, sigmaDDPM),
		row(operator.PhaseRetrieval, 100, 38, 1, one, sigmaFull),
		row(operator.NonlinearDeblur, 100, 8, 1.5, early, sigmaDDPM),
		hdr,
	}, ddiffNaturalOthers()...)
}

// ddiffNaturalOthers has the rows of the tasks that are not the paper's. They were chosen on the photographs of
// [tuningPhotographs], see docs/tuning.md. The residual of JPEG compression is zero wherever x rounds to the coefficients of y, so it becomes
// small before the solver ends. The gradient of its square becomes small with it; that of the norm does not.
func ddiffNaturalOthers() []Row {
	row := func(task string, gamma0, b float64, t0 parameter.Value) Row {
		return Row{"natural", task, 100, map[string]parameter.Value{
			"gamma0": parameter.Number(gamma0), "b": parameter.Number(b), "t0": t0, "sigma_rule": parameter.Word(sigmaDDPM),
		}, tuningPhotographs()[:6]}
	}
	none, early := parameter.Word(parameter.None), parameter.Number(300)
	jpeg := row(operator.JPEG, 0.1, 1, early)
	jpeg.Values["gradient"], jpeg.Values["a"] = parameter.Word(GradientSquared), parameter.Number(1)
	denoise := row(operator.Denoise, 6, 1, early)
	denoise.ChosenOn = fourPhotographs()
	colorize := row(operator.Colorize, 8, 1, none)
	colorize.ChosenOn = tuningPhotographs()
	return []Row{
		denoise,
		jpeg,
		row(operator.SuperResolutionArea, 15, 0.5, none),
		colorize,
		row(operator.Demosaic, 6, 0.7, early),
		row(operator.Inpaint, 6, 1, none),
	}
}
