package method

import (
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// ddiffNatural is tuned for the bundled prior: few steps; a larger b, because a weak prior smooths the image away when
// it is left alone with it; an earlier end of the added noise. Box inpainting and HDR add no noise: in the hole, and where A is
// flat, no gradient corrects an error that noise causes.
//
// The settings of the paper's tasks have the highest mean PSNR on the bundled photographs at 128×128 with sigma 0.05, so
// figures on those photographs are those of tuned data. The settings of the other tasks were chosen on the photographs of
// [tuningPhotographs], at the sizes and noise levels of docs/tuning.md.
func ddiffNatural() []Row {
	row := func(task string, steps int, gamma0, b float64, t0 parameter.Value, rule string, chosenOn []string) Row {
		return Row{"natural", task, steps, map[string]parameter.Value{
			"gamma0": parameter.Number(gamma0), "b": parameter.Number(b), "t0": t0, "sigma_rule": parameter.Word(rule),
		}, chosenOn}
	}
	none, one, early := parameter.Word(parameter.None), parameter.Number(1), parameter.Number(300)
	paper, others := photographs(), tuningPhotographs()
	return []Row{
		row(operator.SuperResolution, 100, 45, 0.5, one, sigmaFull, paper),
		row(operator.InpaintBox, 100, 5, 1, none, sigmaDDPM, paper),
		row(operator.InpaintRandom, 100, 5, 1, early, sigmaDDPM, paper),
		row(operator.GaussianDeblur, 120, 8, 1.5, early, sigmaDDPM, paper),
		row(operator.MotionDeblur, 200, 8, 1.5, early, sigmaDDPM, paper),
		row(operator.PhaseRetrieval, 100, 38, 1, one, sigmaFull, paper),
		row(operator.NonlinearDeblur, 100, 8, 1.5, early, sigmaDDPM, paper),
		row(operator.HDR, 150, 4, 1, none, sigmaDDPM, paper),
		row(operator.Denoise, 100, 6, 1, early, sigmaDDPM, others),
	}
}
