package method

import "ddiff/restore/operator"

// dcdpPublished are the settings of the authors' code for FFHQ, github.com/Morefre/Decoupled-Data-Consistency-with-Diffusion-Purification-for-Image-Restoration
// at fa89ad3, folder purification_configurations. There are none for ImageNet and for HDR.
// The mask of its inpainting is a box (dcdp.py); random inpainting has the same settings here.
func dcdpPublished() []Row {
	row := func(task string, steps, gradientSteps int, lr float64, from, to int) Row {
		return publishedRow("ffhq", task, steps, "csgm_num_iterations", gradientSteps, "lr", lr, "momentum", 0.9,
			"ddim_init_timestep", from, "ddim_end_timestep", to, "ddim_num_iterations", 20)
	}
	return []Row{
		row(operator.SuperResolution, 10, 100, 1000, 400, 0),   // purification_config_super_resolution.yaml:2
		row(operator.InpaintBox, 20, 50, 1000, 700, 0),         // purification_config_inpainting.yaml:2
		row(operator.InpaintRandom, 20, 50, 1000, 700, 0),      // purification_config_inpainting.yaml:2
		row(operator.GaussianDeblur, 10, 100, 100000, 400, 0),  // purification_config_gaussian_deblur.yaml:2
		row(operator.MotionDeblur, 10, 100, 100000, 400, 0),    // purification_config_motion_deblur.yaml:2
		row(operator.PhaseRetrieval, 200, 100, 500, 1000, 20),  // purification_config_phase_retrieval.yaml:2
		row(operator.NonlinearDeblur, 200, 100, 300, 1000, 50), // purification_config_nonlinear_deblur.yaml:2
	}
}
