// Package comparison compares two sets of results, paired by measurement.
package comparison

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"ddiff/internal/failure"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// ErrNotComparable: two sets of results cannot be compared; the text states the reason.
var ErrNotComparable = failure.New(failure.Input, "not comparable")

// Versus is the comparison of two sets of results, problem by problem, paired by measurement.
type Versus struct {
	// Metric is the versioned id of the compared metric.
	Metric string `json:"metric"`
	// Rows are the problems that both sides solved, in the order of tables.
	Rows []VersusRow `json:"rows"`
	// OnlyA and OnlyB are problems of one side.
	OnlyA []sweep.Problem `json:"only_a,omitempty"`
	OnlyB []sweep.Problem `json:"only_b,omitempty"`
	// Unequal are the conditions, beside methods and settings, in which the sides differ.
	Unequal []Unequal `json:"unequal,omitempty"`
	// Images are the differences of all measurements, the largest first.
	Images []ImageDifference `json:"images"`
}

// VersusRow is the comparison on one problem.
type VersusRow struct {
	sweep.Problem
	// A and B are the two approaches.
	A sweep.Approach `json:"a"`
	B sweep.Approach `json:"b"`
	// MeanA and MeanB are the means over the compared measurements.
	MeanA statistic.Estimate `json:"mean_a,omitzero"`
	MeanB statistic.Estimate `json:"mean_b,omitzero"`
	aggregate.Paired
}

// ImageDifference is the difference on one measurement.
type ImageDifference struct {
	sweep.Problem
	Image string `json:"image"`
	Seed  uint64 `json:"seed"`
	// ItemA and ItemB are the identities of the runs that the rule chose, without a choice of the first finished runs.
	ItemA string `json:"item_a"`
	ItemB string `json:"item_b"`
	// ValueA and ValueB are the scores of the runs combined by the rule.
	ValueA float64 `json:"value_a"`
	ValueB float64 `json:"value_b"`

	a, b *entry.Entry
}

// Difference is the score of A minus that of B.
func (d ImageDifference) Difference() float64 { return d.ValueA - d.ValueB }

// Compare compares two sets of results by a metric, "" for PSNR: the name of a column of scores. Each side must have one approach to each problem, and both sides the same
// measurements of each common problem. The error wraps [ErrNotComparable] otherwise, if no problem is common, or if the
// rule is an oracle. It wraps [result.ErrVersions] if the sides have no score, or not one version of it. All measurements of both
// sides are in memory.
func Compare(a, b iter.Seq2[item.Result, error], tasks operator.Set, rule selection.Rule, name string) (*Versus, error) {
	name = cmp.Or(name, metric.NamePSNR)
	if rule.Oracle() {
		return nil, fmt.Errorf("%w: the rule %s looks at the truth, which would rank an oracle", ErrNotComparable, rule)
	}
	var sides [2]side
	for i, results := range []iter.Seq2[item.Result, error]{a, b} {
		var err error
		if sides[i], err = newSide(results, tasks, rule, name); err != nil {
			return nil, fmt.Errorf("side %c: %w", 'A'+i, err)
		}
	}
	id, err := entry.CommonVersion(sides[0].columns, sides[1].columns, name)
	if err != nil {
		return nil, err
	}
	v := &Versus{Metric: id, Rows: []VersusRow{}, Images: []ImageDifference{}}
	for _, p := range sides[0].problems {
		if sides[1].of[p] == nil {
			v.OnlyA = append(v.OnlyA, p)
		} else if err := v.add(sides[0].rule, sides[0].of[p], sides[1].of[p]); err != nil {
			return nil, err
		}
	}
	for _, p := range sides[1].problems {
		if sides[0].of[p] == nil {
			v.OnlyB = append(v.OnlyB, p)
		}
	}
	if len(v.Rows) == 0 {
		return nil, fmt.Errorf("%w: no problem is common: %s", ErrNotComparable, contrast(sides[0].problems, sides[1].problems))
	}
	aggregate.AdjustHolm(len(v.Rows), func(i int) *aggregate.Paired { return &v.Rows[i].Paired })
	slices.SortStableFunc(v.Images, func(x, y ImageDifference) int {
		return cmp.Compare(math.Abs(y.Difference()), math.Abs(x.Difference()))
	})
	return v, nil
}

// name returns the name of the metric.
func (v *Versus) name() string { return metric.NameOf(v.Metric) }

// contrast names the first problem of each side.
func contrast(a, b []sweep.Problem) string {
	if len(a) == 0 || len(b) == 0 {
		return "one side has no restored item"
	}
	return fmt.Sprintf("A has %s, B has %s", a[0].Describe(), b[0].Describe())
}

// side is one side of a comparison: one approach to each problem.
type side struct {
	columns  *entry.Columns
	rule     selection.Rule
	problems []sweep.Problem
	of       map[sweep.Problem]*entry.Group
}

func newSide(results iter.Seq2[item.Result, error], tasks operator.Set, rule selection.Rule, name string) (s side, err error) {
	set, err := entry.Collect(result.OnlyScores(results, name), tasks, rule, false)
	if err != nil {
		return s, err
	}
	s = side{columns: set.Columns, rule: set.Rule, of: make(map[sweep.Problem]*entry.Group)}
	for _, g := range set.Groups {
		if !g.Resolved() {
			continue
		}
		if one := s.of[g.Problem]; one != nil {
			return s, fmt.Errorf("%w: %s is solved in two ways, %s and %s; select one with a condition",
				ErrNotComparable, g.Describe(), one.FullText(), g.FullText())
		}
		s.of[g.Problem] = g
		s.problems = append(s.problems, g.Problem)
	}
	return s, nil
}

// add compares the sides on one problem.
func (v *Versus) add(rule selection.Rule, a, b *entry.Group) error {
	paired, pairs, err := aggregate.Compare(a, b, v.name(), "A", "B")
	if err != nil {
		return fmt.Errorf("%w: %s: %w; are images, seed, masks and kernels equal?", ErrNotComparable, a.Describe(), err)
	}
	var valuesA, valuesB []float64
	var images []uint64
	for _, p := range pairs {
		m, n := p[0], p[1]
		x, y := m.Of(v.name()), n.Of(v.name())
		valuesA, valuesB, images = append(valuesA, x), append(valuesB, y), append(images, m.Image)
		v.addUnequal(rule, m, n)
		v.Images = append(v.Images, ImageDifference{
			Problem: a.Problem, Image: m.Name, Seed: m.Seed, ItemA: m.ID, ItemB: n.ID, ValueA: x, ValueB: y, a: m.Entry, b: n.Entry,
		})
	}
	v.Rows = append(v.Rows, VersusRow{
		Problem: a.Problem, A: a.Approach, B: b.Approach, Paired: paired,
		MeanA: statistic.ClusterMean(valuesA, images), MeanB: statistic.ClusterMean(valuesB, images),
	})
	return nil
}
