package method

import (
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// resamplePublished are the settings of the authors' code for FFHQ, github.com/soominkwon/resample at 3e332b2: 500 steps
// (sample_condition.py:33) and constants of ldm/models/diffusion/ddim.py, for all tasks of configs/tasks whose main sampler is
// resample. The scale of these files is not read: ddim.py:260 passes its own.
func resamplePublished() []Row {
	var rows []Row
	for _, task := range []string{operator.SuperResolution, operator.InpaintRandom, operator.GaussianDeblur, operator.MotionDeblur} {
		rows = append(rows, Row{Preset: "ffhq", Task: task, Steps: 500, Values: map[string]parameter.Value{
			"guidance":       parameter.Number(0.5),   // ddim.py:260
			"interval":       parameter.Number(10),    // ddim.py:273
			"travel":         parameter.Number(5),     // ddim.py:206
			"resample_scale": parameter.Number(40),    // ddim.py:289
			"pixel_steps":    parameter.Number(2000),  // ddim.py:337
			"pixel_lr":       parameter.Number(0.01),  // ddim.py:353
			"latent_steps":   parameter.Number(500),   // ddim.py:373
			"latent_lr":      parameter.Number(0.005), // ddim.py:394
			"tolerance":      parameter.Number(0.001), // ddim.py:337, 373
		}})
	}
	return rows
}
