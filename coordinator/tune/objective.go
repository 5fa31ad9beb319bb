package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ddiff/coordinator/report/selection"
)

// Objective is the figure by which settings are chosen.
type Objective string

// The objectives. The first three need the truth.
const (
	ObjectivePSNR    Objective = "psnr"
	ObjectiveSSIM    Objective = "ssim"
	ObjectiveHaarPSI Objective = "haarpsi"
	// ObjectiveMinMisfit is the smallest mean square residual. It prefers settings that fit the noise.
	ObjectiveMinMisfit Objective = "min_misfit"
	// ObjectiveClosestToNoise is the mean square residual closest to its expectation.
	ObjectiveClosestToNoise Objective = "closest_to_noise"
)

// Objectives returns all objectives, the default first.
func Objectives() []Objective {
	return []Objective{ObjectivePSNR, ObjectiveSSIM, ObjectiveHaarPSI, ObjectiveMinMisfit, ObjectiveClosestToNoise}
}

// ParseObjective parses a name; the empty name is psnr.
func ParseObjective(name string) (Objective, error) {
	if name == "" {
		return ObjectivePSNR, nil
	}
	if o := Objective(name); slices.Contains(Objectives(), o) {
		return o, nil
	}
	var names []string
	for _, o := range Objectives() {
		names = append(names, string(o))
	}
	return "", fmt.Errorf("objective %q is none of %s", name, strings.Join(names, ", "))
}

// Merit returns the value of a measurement by the objective; higher is better. For min_misfit it is sigma^2 minus the mean
// square residual, for closest_to_noise the negative distance of the two.
func (o Objective) Merit(s selection.Scores) float64 {
	switch o {
	case ObjectiveSSIM:
		return s.SSIM
	case ObjectiveHaarPSI:
		return s.HaarPSI
	case ObjectiveMinMisfit:
		return -s.Residual
	case ObjectiveClosestToNoise:
		return -math.Abs(s.Residual)
	}
	return s.PSNR
}
