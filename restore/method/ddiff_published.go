package method

import "ddiff/restore/operator"

// ddiffPublished has the presets ffhq and imagenet, for 256×256 images and 1000 steps. They are those of the authors' code
// (SoniaMinseoKim/ddiff-cvpr at ae3ce1f; lines of ddiff_sample.py):
//
//	gamma0, t0   --scale and --forward_step of run_ffhq.sh and run_imagenet.sh, and the table of the README
//	a, b, t_gamma   line 393, one rule for all tasks
//	sigma_rule   lines 427 to 434, by task
//	gradient     line 337
//	answer       line 422: the step at index 0 writes nothing
//
// The paper's Tables 5 and 6 (appendix "Hyperparameter Choices") have the same values but one: t_γ is 500 for box inpainting on ImageNet. Both
// differences between text and code, and that of the gradient, are in docs/parity.md.
func ddiffPublished() []Row {
	var rows []Row
	add := func(task string, rule string, scaleFFHQ, forwardFFHQ, scaleImageNet, forwardImageNet float64) {
		for _, p := range []struct {
			preset    string
			gamma0, t float64
		}{{"ffhq", scaleFFHQ, forwardFFHQ}, {"imagenet", scaleImageNet, forwardImageNet}} {
			rows = append(rows, publishedRow(p.preset, task, 1000, "gamma0", p.gamma0, "a", 3.3, "b", 0.1, "t_gamma", 90, "t0", p.t,
				"sigma_rule", rule, "gradient", GradientUnit, "answer", answerState))
		}
	}
	add(operator.SuperResolution, sigmaFull, 18, 1, 18, 1)
	add(operator.InpaintBox, sigmaFull, 30, 1, 50, 1)
	add(operator.InpaintRandom, sigmaFull, 50, 1, 50, 1)
	add(operator.GaussianDeblur, sigmaDDPM, 2.9, 50, 1.8, 50)
	add(operator.MotionDeblur, sigmaDDPM, 2.9, 80, 1.5, 80)
	add(operator.PhaseRetrieval, sigmaFull, 38, 1, 38, 1)
	add(operator.NonlinearDeblur, sigmaDDPM, 2.5, 120, 2.5, 120)
	add(operator.HDR, sigmaDDPM, 3.5, 120, 3.8, 100)
	return rows
}
