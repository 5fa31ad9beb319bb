package method

import "ddiff/restore/operator"

// dpsPublished are the settings of the authors' code, github.com/DPS2022/diffusion-posterior-sampling at effbde7, folder configs,
// with 1000 steps (diffusion_config.yaml:2). The files of tasks serve both datasets (README.md:104). There is none for HDR.
func dpsPublished() []Row {
	var rows []Row
	for _, preset := range []string{"ffhq", "imagenet"} {
		row := func(task string, scale float64) {
			rows = append(rows, publishedRow(preset, task, 1000, "scale", scale))
		}
		row(operator.SuperResolution, 0.3) // super_resolution_config.yaml:4
		row(operator.InpaintBox, 0.5)      // inpainting_config.yaml:4
		row(operator.InpaintRandom, 0.5)   // inpainting_config.yaml:4
		row(operator.GaussianDeblur, 0.3)  // gaussian_deblur_config.yaml:4
		row(operator.MotionDeblur, 0.3)    // motion_deblur_config.yaml:4
		row(operator.PhaseRetrieval, 1)    // phase_retrieval_config.yaml:4
		row(operator.NonlinearDeblur, 0.3) // nonlinear_deblur_config.yaml:4
	}
	return rows
}
