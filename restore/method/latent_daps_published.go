package method

import (
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// latentDAPSPublished are the sections ldm of the authors' code, github.com/zhangbingliang2019/DAPS at 098df6b, folder configs/task,
// with 50 steps of two evaluations (commands/ldm_ffhq.sh:16 and commands/ldm_imagenet.sh:16). FFHQ and ImageNet have the same.
func latentDAPSPublished() []Row {
	var rows []Row
	for _, preset := range []string{"ffhq", "imagenet"} {
		row := func(task string, steps, lr, ratio, momentum float64) {
			rows = append(rows, Row{Preset: preset, Task: task, Steps: 50, Values: map[string]parameter.Value{
				"chain_steps": parameter.Number(steps), "lr": parameter.Number(lr), "lr_ratio": parameter.Number(ratio),
				"momentum": parameter.Number(momentum), "tau": parameter.Number(0.01),
			}})
		}
		row(operator.SuperResolution, 24, 1.35e-4, 0.023, 0.86) // down_sampling.yaml:35
		row(operator.InpaintBox, 15, 9.02e-6, 0.13, 0.74)       // inpainting.yaml:37
		row(operator.InpaintRandom, 38, 8.40e-6, 0.013, 0.92)   // inpainting_rand.yaml:37
		row(operator.GaussianDeblur, 35, 2.70e-6, 0.95, 0.95)   // gaussian_blur.yaml:35
		row(operator.MotionDeblur, 49, 2.4e-5, 0.041, 0.45)     // motion_blur.yaml:35
		row(operator.PhaseRetrieval, 65, 2.1e-5, 0.12, 0.41)    // phase_retrieval.yaml:33
		row(operator.NonlinearDeblur, 80, 3.71e-6, 0.024, 0.91) // nonlinear_blur.yaml:33
		row(operator.HDR, 38, 4.52e-6, 0.015, 0.58)             // hdr.yaml:33
	}
	return rows
}
