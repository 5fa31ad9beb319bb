package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

// Objective is the figure by which settings are chosen: the name of a metric of [metric.Builtin] that compares with the truth, or a constant.
type Objective string

// The objectives that need no truth.
const (
	// ObjectiveMinMisfit is the smallest mean square residual. It prefers settings that fit the noise.
	ObjectiveMinMisfit Objective = "min_misfit"
	// ObjectiveClosestToNoise is the mean square residual closest to its expectation.
	ObjectiveClosestToNoise Objective = "closest_to_noise"
)

// Objectives returns all objectives, the default first.
func Objectives() []Objective {
	var out []Objective
	for _, m := range metric.Builtin().Comparing() {
		out = append(out, Objective(m.Name))
	}
	return append(out, ObjectiveMinMisfit, ObjectiveClosestToNoise)
}

// ParseObjective parses a name; the empty name is the default.
func ParseObjective(name string) (Objective, error) {
	all := Objectives()
	o := cmp.Or(Objective(name), all[0])
	if !slices.Contains(all, o) {
		var names []string
		for _, o := range all {
			names = append(names, string(o))
		}
		return "", fmt.Errorf("objective %q is none of %s", name, strings.Join(names, ", "))
	}
	return o, nil
}

// Merit returns the value of a measurement by the objective; higher is better. For min_misfit it is sigma^2 minus the mean
// square residual, for closest_to_noise the negative distance of the two.
func (o Objective) Merit(s item.Metrics) float64 {
	switch o {
	case ObjectiveMinMisfit:
		return -s.Of(metric.NameResidual)
	case ObjectiveClosestToNoise:
		o = metric.NameResidual
	}
	return metric.Describe(string(o)).Merit(s.Of(string(o)))
}
