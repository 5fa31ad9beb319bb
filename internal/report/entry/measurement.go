package entry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
	"ddiff/restore/item"
)

// Group has the measurements that were restored in one way: those of one row of the table.
type Group struct {
	sweep.Cell
	Measurements []*Measurement
	// Lost has the rows of which an item failed before its settings were known, and may belong to the group.
	Lost map[Row]bool
}

// Row names a row of a dataset in campaigns of one seed.
type Row struct {
	Name string
	Seed uint64
}

// row is that of the measurement.
func (m *Measurement) row() Row { return Row{m.Name, m.Seed} }

// Measurement is one measurement that was restored in one way, in any number of runs.
type Measurement struct {
	*Entry // [Combine] of the finished runs, without any the first run

	Items, Failed, Dead int
	Done                []*Entry // the finished runs
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

// groups groups sorted entries, and combines the runs of each measurement by the rule.
func groups(ordered []*Entry, rule selection.Rule) []*Group {
	var out []*Group
	for same := range sweep.Blocks(ordered, func(e *Entry) *sweep.Cell { return e.Cell }) {
		g := &Group{Cell: *same[0].Cell, Lost: make(map[Row]bool)}
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
			if len(m.Done) > 0 {
				m.Entry = Combine(rule, m.Done)
			}
		}
		out = append(out, g)
	}
	for _, unresolved := range out {
		if unresolved.Resolved() {
			continue
		}
		for _, g := range out {
			if !unresolved.MayBe(g.Cell) {
				continue
			}
			for _, m := range unresolved.Measurements {
				g.Lost[m.row()] = true
			}
		}
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

// Suspect reports whether at least half of the finished items have warnings.
func (g *Group) Suspect() bool {
	items, warned := 0, 0
	for _, m := range g.Measurements {
		items += len(m.Done)
		for _, e := range m.Done {
			if e.Warnings != "" {
				warned++
			}
		}
	}
	return warned > 0 && 2*warned >= items
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

// Compared are the pairs of two groups that were given the same measurements, and the number of measurements that one of them, or both, have lost.
// The error states how the measurements differ; nameA and nameB name the groups in it.
func Compared(a, b *Group, nameA, nameB string) (pairs [][2]*Measurement, lost int, err error) {
	givenA, givenB := a.Originals(), b.Originals()
	pairs = Pairs(givenA, givenB)
	paired := make(map[[16]byte]bool)
	for _, p := range pairs {
		paired[p[0].Measurement] = true
	}
	both := maps.Clone(a.Lost)
	maps.DeleteFunc(both, func(r Row, _ bool) bool { return !b.Lost[r] })
	lost, differ := len(both), false
	for given, other := range map[*Group]*Group{a: b, b: a} {
		for _, m := range given.Originals() {
			if !paired[m.Measurement] {
				lost, differ = lost+1, differ || !other.Lost[m.row()]
			}
		}
	}
	if differ {
		return nil, 0, fmt.Errorf("different measurements: %d of %s, %d of %s, %d in common", len(givenA), nameA, len(givenB), nameB, len(pairs))
	}
	return pairs, lost, nil
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
