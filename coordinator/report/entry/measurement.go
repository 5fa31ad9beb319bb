package entry

import (
	"cmp"
	"slices"
	"strings"

	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/item"
)

// Group has the measurements that were restored in one way: those of one row of the table.
type Group struct {
	sweep.Cell
	Measurements []*Measurement
}

// Measurement is one measurement that was restored in one way, in any number of runs.
type Measurement struct {
	*Entry // of the first run

	Items, Failed, Dead int
	Done                []*Entry         // the finished runs
	Combined            selection.Scores // of the finished runs, undefined without any
	// Copy: the group has the measurement under an earlier name as well. A copy counts as items, and not in the figures.
	Copy bool
}

func (m *Measurement) add(e *Entry) {
	m.Items++
	switch e.Outcome {
	case item.OutcomeDone:
		m.Done = append(m.Done, e)
	case item.OutcomeFailed:
		m.Failed++
	case item.OutcomeDead:
		m.Dead++
	}
}

// ResidualRatio is [Entry.ResidualRatio] of the combined runs.
func (m *Measurement) ResidualRatio() float64 {
	combined := *m.Entry
	combined.Scores = m.Combined
	return combined.ResidualRatio()
}

// groups groups sorted entries, and combines the runs of each measurement by the rule.
func groups(ordered []*Entry, rule selection.Rule) []*Group {
	var out []*Group
	for same := range sweep.Blocks(ordered, (*Entry).Cell) {
		g := &Group{Cell: same[0].Cell()}
		targets, seen := make(map[[16]byte]*Measurement), make(map[[16]byte]bool)
		for _, e := range same {
			m := targets[e.Target]
			if m == nil {
				m = &Measurement{Entry: e, Copy: seen[e.Measurement]}
				targets[e.Target], seen[e.Measurement] = m, true
				g.Measurements = append(g.Measurements, m)
			}
			m.add(e)
		}
		for _, m := range g.Measurements {
			runs := make([]selection.Scores, len(m.Done))
			for i, e := range m.Done {
				runs[i] = e.Scores
			}
			m.Combined = selection.Combine(rule, runs)
		}
		out = append(out, g)
	}
	return out
}

// Finished are the measurements with a finished run, without copies.
func (g *Group) Finished() []*Measurement {
	return slices.DeleteFunc(g.Originals(), func(m *Measurement) bool { return len(m.Done) == 0 })
}

// Originals are the measurements without copies.
func (g *Group) Originals() []*Measurement {
	return slices.DeleteFunc(slices.Clone(g.Measurements), func(m *Measurement) bool { return m.Copy })
}

// Pairs are the measurements that both lists have, in the order of the first.
func Pairs(a, b []*Measurement) (out [][2]*Measurement) {
	other := make(map[[16]byte]*Measurement)
	for _, m := range b {
		other[m.Measurement] = m
	}
	for _, m := range a {
		if n := other[m.Measurement]; n != nil {
			out = append(out, [2]*Measurement{m, n})
		}
	}
	return out
}

// Precisions names those of the score network in the runs that the rule uses; "" if one is unknown.
func (m *Measurement) Precisions(rule selection.Rule) string {
	done := m.Done
	if rule == selection.First {
		done = done[:1]
	}
	var names []string
	for _, e := range done {
		name := cmp.Or(e.Used, string(e.Precision))
		if name == "" {
			return ""
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}
