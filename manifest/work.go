package manifest

import "encoding/hex"

// Work identifies what the time of an item depends on, as far as a campaign says: items of campaigns with equal work take about the same time
// on one worker. It is empty for images with their own sizes.
func (s *Spec) Work() string {
	if s.Dataset.Fit == FitPad {
		return ""
	}
	var tasks []TaskSpec
	for _, t := range s.Tasks {
		t.Sigma, t.Photons, t.Runs, t.Mask, t.Kernel = nil, nil, 0, "", ""
		tasks = append(tasks, t)
	}
	key, err := digest(Spec{
		Dataset: Dataset{Size: s.Dataset.Size}, Tasks: tasks, Methods: s.Methods, Preset: s.Preset, Prior: s.Prior, Steps: s.Steps, Solver: s.Solver,
		Precision: s.Precision, Float32: s.Float32, Tile: s.Tile, Overlap: s.Overlap,
	})
	if err != nil { // NaN, which no valid campaign has
		return ""
	}
	return hex.EncodeToString(key[:])
}
