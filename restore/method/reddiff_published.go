package method

import "ddiff/restore/operator"

// redDiffPublished are the settings of the authors' README and scripts for ImageNet, github.com/NVlabs/RED-diff at 66482f2, with the 100 steps
// of README.md:88. sample_test.sh:9 has 10 steps. Motion deblurring has no settings. The code has a network for FFHQ and no settings for it.
//
// The scripts contradict the README for inpainting: lr 0.25 with λ 1 (sample_test.sh:13) or the default λ (113), and the default lr
// with λ 1 and 1000 steps (sample_batch.sh:8, 17, 35), which are there also for super-resolution. Super-resolution has no row: sample_test.sh:92 has the
// defaults of _configs/algo/reddiff.yaml.
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
