package method

import "ddiff/restore/operator"

// diffPIRPublished are the settings of the authors' code, github.com/yuanzhi-zhu/DiffPIR at 111d26e, which names networks for FFHQ and
// ImageNet and has the same settings for both. Its deblurring has 100 steps (main_ddpir_deblur.py:38), its inpainting 20
// (main_ddpir_inpainting.py:34). For super-resolution it tries λ from 2 to 12 (main_ddpir_sisr.py:482) and states no choice.
func diffPIRPublished() []Row {
	var rows []Row
	for _, preset := range []string{"ffhq", "imagenet"} {
		rows = append(rows,
			publishedRow(preset, operator.InpaintBox, 20, "lambda", 1, "zeta", 1),        // main_ddpir_inpainting.py:385, 388
			publishedRow(preset, operator.InpaintRandom, 20, "lambda", 1, "zeta", 1),     // main_ddpir_inpainting.py:385, 388
			publishedRow(preset, operator.GaussianDeblur, 100, "lambda", 7, "zeta", 0.3), // main_ddpir_deblur.py:440, 442
			publishedRow(preset, operator.MotionDeblur, 100, "lambda", 7, "zeta", 0.3),   // main_ddpir_deblur.py:440, 442
		)
	}
	return rows
}
