package comparison

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
)

// Unequal is a property in which the two sides of a comparison differ although no method, preset or setting does: the difference of
// their scores may come from it.
type Unequal struct {
	// Field is prior, precision, runs or tuning.
	Field string `json:"field"`
	// A and B are the values of each side in the measurements that differ, sorted.
	A []string `json:"a"`
	B []string `json:"b"`
	// Measurements counts these measurements.
	Measurements int `json:"measurements"`
}

// String is a line for people.
func (u Unequal) String() string {
	return fmt.Sprintf("unequal %s: %s in A, %s in B (measurements: %d)", u.Field, strings.Join(u.A, " and "), strings.Join(u.B, " and "), u.Measurements)
}

// addUnequal compares the conditions of a measurement's restorations. A rule that takes the first run does not depend on the number of
// runs. Results of early versions do not state their precision.
func (v *Versus) addUnequal(rule selection.Rule, a, b *entry.Measurement) {
	runs := func(m *entry.Measurement) string {
		if rule == selection.First {
			return ""
		}
		return strconv.Itoa(len(m.Done))
	}
	v.countUnequal("prior", sweep.ShortPrior(a.Prior), sweep.ShortPrior(b.Prior))
	if x, y := a.Precisions(rule), b.Precisions(rule); x != "" && y != "" {
		v.countUnequal("precision", x, y)
	}
	v.countUnequal("runs", runs(a), runs(b))
}

// AddTunings adds to [Versus.Unequal] that the settings of one side were chosen with compared images, and those of the other were not.
func (v *Versus) AddTunings(t *aggregate.Tunings) {
	choices := make(map[sweep.Cell]*aggregate.TunedImages)
	tuning := func(e *entry.Entry) string {
		c, known := choices[*e.Cell]
		if !known {
			c = t.Of(e)
			choices[*e.Cell] = c
		}
		if c.Has(e.Image) {
			return "with the same image"
		}
		return "without the image"
	}
	for _, d := range v.Images {
		v.countUnequal("tuning", tuning(d.a), tuning(d.b))
	}
}

// countUnequal adds a measurement to a field if its values differ.
func (v *Versus) countUnequal(field, a, b string) {
	if a == b {
		return
	}
	i := slices.IndexFunc(v.Unequal, func(u Unequal) bool { return u.Field == field })
	if i < 0 {
		i = len(v.Unequal)
		v.Unequal = append(v.Unequal, Unequal{Field: field})
	}
	u := &v.Unequal[i]
	u.Measurements++
	for _, side := range []struct {
		values *[]string
		value  string
	}{{&u.A, a}, {&u.B, b}} {
		if at, known := slices.BinarySearch(*side.values, side.value); !known {
			*side.values = slices.Insert(*side.values, at, side.value)
		}
	}
}
