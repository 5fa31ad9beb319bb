package method

import "ddiff/restore/operator"

// ddrmPublished are the settings of the authors' command for ImageNet, github.com/bahjat-kawar/ddrm at 32b6b3c: 20 steps, η 0.85 and η_b 1
// (README.md:66, which are the defaults of main.py:70 and 73). The code has no task-specific settings, and none for FFHQ.
func ddrmPublished() []Row {
	var rows []Row
	for _, task := range []string{operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur} {
		rows = append(rows, publishedRow("imagenet", task, 20, "eta", 0.85, "eta_b", 1))
	}
	return rows
}
