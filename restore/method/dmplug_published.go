package method

import "ddiff/restore/operator"

// dmplugPublished are the settings of the authors' code, github.com/sun-umn/DMPlug at e3101e7, which has a network for FFHQ: three steps
// (sr_inp_nonlinear.py:156), learning rate 0.01 (line 163), and 5000 iterations, for nonlinear deblurring 10000 (line 57).
func dmplugPublished() []Row {
	row := func(task string, iterations int) Row {
		return publishedRow("ffhq", task, iterations, "lr", 0.01, "ddim_steps", 3)
	}
	return []Row{
		row(operator.SuperResolution, 5000),
		row(operator.InpaintRandom, 5000), // configs/tasks/inpainting_config.yaml:5
		row(operator.NonlinearDeblur, 10000),
	}
}
