package method

import (
	"fmt"
	"math"
	"slices"

	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// Planned returns the steps of a method for settings, see [Method.Plan]. It returns ErrSetting for settings whose plan has a number that
// float32, in which the graph of a step computes, does not have. The message names the setting, if one alone is the reason.
func Planned(m Method, s Settings, schedule prior.Schedule, image operator.Shape) ([]Step, error) {
	steps, err := m.Plan(s, schedule, image)
	if err != nil || finite(steps) {
		return steps, err
	}
	declared := m.Info().Parameters
	for _, v := range s.Values {
		i := slices.IndexFunc(declared, func(p parameter.Parameter) bool { return p.Name == v.Name })
		if i < 0 || v.Value == declared[i].Start() {
			continue
		}
		if other, err := m.Plan(s.With(v.Name, declared[i].Start()), schedule, image); err == nil && finite(other) {
			return nil, fmt.Errorf("%w %s: %v is too extreme: float32 does not have the numbers of a step; choose a value nearer to the default, %v",
				ErrSetting, v.Name, v.Value, declared[i].Start())
		}
	}
	return nil, fmt.Errorf("%w: float32 does not have the numbers of a step; choose values nearer to the defaults of %s", ErrSetting, s.Method)
}

// finite reports whether float32 has all numbers of the steps. NaN, the fault of a method, does not count.
func finite(steps []Step) bool {
	outside := func(v float64) bool { return math.Abs(v) > math.MaxFloat32 }
	for _, st := range steps {
		for _, v := range st.Scalars {
			if outside(v) {
				return false
			}
		}
		for _, v := range st.Std {
			if outside(v) {
				return false
			}
		}
		for _, list := range st.Lists {
			if slices.ContainsFunc(list, outside) {
				return false
			}
		}
	}
	return true
}
