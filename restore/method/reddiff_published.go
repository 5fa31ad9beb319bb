package method

import "ddiff/restore/operator"

// redDiffPublished are the settings of the authors' scripts for ImageNet, github.com/NVlabs/RED-diff at 66482f2, with 100 steps (README.md:88).
// Super-resolution and motion deblurring have no settings of their own: the defaults are those of _configs/algo/reddiff.yaml.
// The code has a network for FFHQ and no settings for it.
func redDiffPublished() []Row {
	row := func(task string) Row {
		return publishedRow("imagenet", task, 100, "grad_term_weight", 0.25, "lr", 0.5, "denoise_term_weight", "linear")
	}
	return []Row{
		row(operator.InpaintBox),      // README.md:87, 91, 92, with free-form masks
		row(operator.InpaintRandom),   // README.md:87, 91, 92, with free-form masks
		row(operator.GaussianDeblur),  // sample_test.sh:74
		row(operator.PhaseRetrieval),  // sample_test.sh:52
		row(operator.NonlinearDeblur), // sample_test.sh:64
		row(operator.HDR),             // sample_test.sh:39
	}
}
