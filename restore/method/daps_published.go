package method

import "ddiff/restore/operator"

// dapsPublished are the sections pixel of the authors' code, github.com/zhangbingliang2019/DAPS at 098df6b, folder configs/task,
// with 200 steps of five evaluations (commands/pixel_ffhq.sh:16, commands/pixel_imagenet.sh:16) and the levels of
// configs/sampler/edm_daps.yaml:3. FFHQ and ImageNet have the same.
func dapsPublished() []Row {
	var rows []Row
	for _, preset := range []string{"ffhq", "imagenet"} {
		row := func(task string, chainSteps int, lr float64) {
			rows = append(rows, publishedRow(preset, task, 200, "sigma_max", 100, "sigma_min", 0.1, "ode_steps", 5, "ode_end", 0.01,
				"chain", "langevin", "chain_steps", chainSteps, "lr", lr, "lr_ratio", 0.01, "tau", 0.01))
		}
		row(operator.SuperResolution, 100, 1e-4) // down_sampling.yaml:2
		row(operator.InpaintBox, 100, 5e-5)      // inpainting.yaml:2
		row(operator.InpaintRandom, 100, 1e-4)   // inpainting_rand.yaml:2
		row(operator.GaussianDeblur, 100, 1e-4)  // gaussian_blur.yaml:2
		row(operator.MotionDeblur, 100, 5e-5)    // motion_blur.yaml:2
		row(operator.PhaseRetrieval, 100, 5e-5)  // phase_retrieval.yaml:2
		row(operator.NonlinearDeblur, 200, 1e-5) // nonlinear_blur.yaml:2
		row(operator.HDR, 100, 2e-5)             // hdr.yaml:2
	}
	return rows
}
