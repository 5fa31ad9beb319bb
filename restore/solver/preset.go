package solver

import (
	"fmt"

	"ddiff/restore/operator"
)

// The presets.
const (
	PresetFFHQ     = "ffhq"     // the paper's table for FFHQ, 1000 steps
	PresetImageNet = "imagenet" // the paper's table for ImageNet, 1000 steps
	PresetNatural  = "natural"  // ours, tuned for the bundled prior and few steps
)

// Presets lists them.
func Presets() []string { return []string{PresetNatural, PresetFFHQ, PresetImageNet} }

// Preset gives the settings of a preset for a task and method DDiff. The numbers of ffhq and
// imagenet are those of the paper's appendix "Hyperparameter Choices", for 256×256 images.
func Preset(name, task string) (Config, error) {
	table, ok := map[string]map[string]Config{
		PresetFFHQ:     paper(ffhq),
		PresetImageNet: paper(imagenet),
		PresetNatural:  natural(),
	}[name]
	if !ok {
		return Config{}, fmt.Errorf("%w preset: %q is none of %v", ErrConfig, name, Presets())
	}
	c, ok := table[task]
	if !ok {
		return Config{}, fmt.Errorf("%w preset: %s has no settings for task %q", ErrConfig, name, task)
	}
	return c, nil
}

// row is one column of the paper's tables.
type row struct {
	gamma0     float64
	tGamma, t0 int
}

var ffhq = map[string]row{
	operator.SuperResolution: {18, 90, 1},
	operator.InpaintBox:      {30, 90, 1},
	operator.InpaintRandom:   {50, 90, 1},
	operator.GaussianDeblur:  {2.9, 90, 50},
	operator.MotionDeblur:    {2.9, 90, 80},
	operator.PhaseRetrieval:  {38, 90, 1},
	operator.NonlinearDeblur: {2.5, 90, 120},
	operator.HDR:             {3.5, 90, 120},
}

var imagenet = map[string]row{
	operator.SuperResolution: {18, 90, 1},
	operator.InpaintBox:      {50, 500, 1},
	operator.InpaintRandom:   {50, 90, 1},
	operator.GaussianDeblur:  {1.8, 90, 50},
	operator.MotionDeblur:    {1.5, 90, 80},
	operator.PhaseRetrieval:  {38, 90, 1},
	operator.NonlinearDeblur: {2.5, 90, 120},
	operator.HDR:             {3.8, 90, 100},
}

// sigmaRule is the paper's choice of σ_t for a task.
func sigmaRule(task string) string {
	switch task {
	case operator.GaussianDeblur, operator.MotionDeblur, operator.NonlinearDeblur, operator.HDR:
		return SigmaDDPM
	}
	return SigmaFull
}

func paper(rows map[string]row) map[string]Config {
	out := map[string]Config{}
	for task, r := range rows {
		out[task] = Config{
			Method: DDiff, Steps: 1000,
			Gamma0: r.gamma0, A: 3.3, B: 0.1, TGamma: r.tGamma, T0: r.t0,
			SigmaRule: sigmaRule(task), Gradient: GradientNorm,
		}
	}
	return out
}

// natural starts from the paper's FFHQ table; what differs was chosen on the bundled
// photographs.
func natural() map[string]Config {
	out := paper(ffhq)
	for task, c := range out {
		c.Steps, c.B = 100, 1
		out[task] = c
	}
	return out
}
