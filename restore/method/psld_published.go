package method

import (
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// psldPublished are the settings of the authors' scripts, github.com/LituRout/PSLD at d734647b, folder stable-diffusion. The
// scripts of run/*_ldm.sh use the latent prior for FFHQ at 256×256; the others use Stable Diffusion at 512×512, also for
// ImageNet. No script sets the number of steps: scripts/inverse.py:130 has 1000.
func psldPublished() []Row {
	row := func(preset, task string, gamma, omega float64) Row {
		return Row{Preset: preset, Task: task, Steps: 1000, Values: map[string]parameter.Value{
			"gamma": parameter.Number(gamma), "omega": parameter.Number(omega),
		}}
	}
	return []Row{
		row("ffhq", operator.SuperResolution, 0.1, 0.9), // run/inverse_sr_ldm.sh:7
		row("ffhq", operator.InpaintBox, 0.1, 0.1),      // run/inverse_bip_ldm.sh:7
		row("ffhq", operator.InpaintRandom, 0.1, 0.1),   // run/inverse_rip_ldm.sh:7
		row("ffhq", operator.GaussianDeblur, 0.1, 0.1),  // run/inverse_gb_ldm.sh:7
		row("ffhq", operator.MotionDeblur, 0.1, 0.1),    // run/inverse_mb_ldm.sh:7

		row("imagenet", operator.SuperResolution, 0.1, 1), // run/inverse.sh, defaults of scripts/inverse.py:265, 271
		row("imagenet", operator.InpaintBox, 0.01, 0.1),   // run/inverse_bip.sh:7
		row("imagenet", operator.InpaintRandom, 0.1, 1),   // run/inverse_rip.sh, defaults of scripts/inverse.py:265, 271
		row("imagenet", operator.GaussianDeblur, 0.1, 1),  // run/inverse_gb.sh, defaults of scripts/inverse.py:265, 271
		row("imagenet", operator.MotionDeblur, 0.1, 1),    // run/inverse_mb.sh, defaults of scripts/inverse.py:265, 271
	}
}
