package method

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ddiff/internal/restore/prior"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// column is the place of planned numbers in a row of [Run.Row].
type column struct{ at, n int }

// The kinds of columns. A column's key is its kind and the name of the scalar or list. The step's own time is the list
// without a name.
const (
	kindScalar     = "scalar "
	kindList       = "list "
	kindTime       = "time "
	kindAlpha      = "√ᾱ "
	kindSigma      = "√(1−ᾱ) "
	kindClean      = "factor of x "          // in the clean image
	kindPrediction = "factor of prediction " // in the clean image
	kindRows       = "mirror rows "          // 1: the network sees the image mirrored along this axis, see [Mirror]
	kindCols       = "mirror columns "
)

// numbers returns the planned numbers of a step, by its number, by the keys of their columns.
func (r *Run) numbers(step int, st Step) (map[string][]float64, error) {
	out := map[string][]float64{}
	for name, v := range st.Scalars {
		out[kindScalar+name] = []float64{v}
	}
	for name, list := range st.Lists {
		out[kindList+name] = list
	}
	times := maps.Clone(st.Times)
	if times == nil {
		times = map[string][]int{}
	}
	times[""] = []int{st.Time}
	for name, list := range times {
		for i, t := range list {
			if t < 0 || t >= r.Prior.Schedule.Steps() {
				return nil, fmt.Errorf("time %d is outside the prior's schedule", t)
			}
			alpha := r.Prior.Schedule.AlphaBar[t]
			clean := cleanScalars(alpha, r.Prior.Card.Predicts())
			for kind, v := range map[string]float64{
				kindTime: float64(t), kindAlpha: math.Sqrt(alpha), kindSigma: math.Sqrt(1 - alpha),
				kindClean: clean[0], kindPrediction: clean[1],
			} {
				out[kind+name] = append(out[kind+name], v)
			}
			if way := step + i; r.Settings.Word(mirrorName) == mirrorAlternate {
				out[kindRows+name] = append(out[kindRows+name], float64(way>>1&1))
				out[kindCols+name] = append(out[kindCols+name], float64(way&1))
			}
		}
	}
	return out, nil
}

// row checks one planned step, and lays out its numbers: in the order of their keys, as the first step has them.
func (r *Run) row(step int, st Step) ([]float32, error) {
	for name, std := range st.Std {
		if !slices.ContainsFunc(r.Info.Draws, func(d Draw) bool { return d.Name == name }) {
			return nil, fmt.Errorf("draw %q is not declared", name)
		}
		if !(std >= 0) || math.IsInf(std, 0) {
			return nil, fmt.Errorf("draw %q has the standard deviation %g", name, std)
		}
	}
	numbers, err := r.numbers(step, st)
	if err != nil {
		return nil, err
	}
	if r.columns == nil {
		r.columns = map[string]column{}
		for _, key := range slices.Sorted(maps.Keys(numbers)) {
			r.columns[key] = column{r.width, len(numbers[key])}
			r.width += len(numbers[key])
		}
	}
	row := make([]float32, r.width)
	for key, c := range r.columns {
		values := numbers[key]
		if len(values) != c.n || c.n == 0 {
			return nil, fmt.Errorf("%s is missing, or has %d numbers, want %d as in the first step", quoted(key), len(values), c.n)
		}
		for i, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%s is not finite", quoted(key))
			}
			row[c.at+i] = float32(v)
		}
	}
	for key := range numbers {
		if _, ok := r.columns[key]; !ok {
			return nil, fmt.Errorf("%s is missing in the first step", quoted(key))
		}
	}
	return row, nil
}

// quoted returns the key of a column with the name in quotes, for messages.
func quoted(key string) string {
	for _, kind := range []string{kindScalar, kindList, kindTime} {
		if name, ok := strings.CutPrefix(key, kind); ok {
			return fmt.Sprintf("%s%q", kind, name)
		}
	}
	return key
}

// cleanScalars are the planned factors of the clean image: z = factor·x_t + factor·prediction.
func cleanScalars(alpha float64, p prior.Prediction) [2]float64 {
	a, b := math.Sqrt(alpha), math.Sqrt(1-alpha)
	switch p {
	case prior.Sample:
		return [2]float64{0, 1}
	case prior.Velocity:
		return [2]float64{a, -b}
	}
	return [2]float64{1 / a, -b / a}
}

// Planned returns the steps of a method for settings, see [Method.Plan]. It returns ErrSetting for settings whose plan has a number that
// float32, in which the graph of a step computes, does not have. The message names the setting, if one alone is the reason.
func Planned(m Method, s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
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
	for _, st := range steps {
		numbers := slices.Concat(slices.Collect(maps.Values(st.Scalars)), slices.Collect(maps.Values(st.Std)))
		for _, list := range st.Lists {
			numbers = append(numbers, list...)
		}
		if slices.ContainsFunc(numbers, func(v float64) bool { return math.Abs(v) > math.MaxFloat32 }) {
			return false
		}
	}
	return true
}
