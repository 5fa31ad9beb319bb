package selection

import (
	"ddiff/coordinator/tune"
	"ddiff/manifest"
)

// Combine returns the figures of a measurement from the results of its runs, in the order of their numbers, by a rule. ok
// is false if no run is done.
func Combine(rule Rule, runs []manifest.Result) (f tune.Figures, ok bool) {
	var done []Scores
	for i := range runs {
		if runs[i].Outcome == manifest.OutcomeDone {
			done = append(done, ScoresOf(&runs[i]))
		}
	}
	if len(done) == 0 {
		return tune.Figures{}, false
	}
	s := rule.Combine(done)
	return tune.Figures{PSNR: s.PSNR, SSIM: s.SSIM, HaarPSI: s.HaarPSI, Residual: s.Residual}, true
}
