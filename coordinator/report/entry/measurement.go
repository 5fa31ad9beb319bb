package entry

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
)

// Measurement is one measurement that was restored in one way, in any number of runs.
type Measurement struct {
	*Entry // of the first run

	Items, Failed, Dead int
	Done                []*Entry           // the finished runs
	Runs                []selection.Scores // their scores
	Combined            selection.Scores   // of the runs, if there are any
	// Copy: the group has the measurement under an earlier name as well. A copy counts as items, and not in the figures.
	Copy bool
}

func (m *Measurement) add(e *Entry) {
	m.Items++
	switch e.Outcome {
	case manifest.OutcomeDone:
		m.Done, m.Runs = append(m.Done, e), append(m.Runs, e.Scores)
	case manifest.OutcomeFailed:
		m.Failed++
	case manifest.OutcomeDead:
		m.Dead++
	}
}

// Measurements combines the runs of each measurement of a group by the rule. It holds the entries of one group and image
// name, and the digests of the group's measurements, at a time.
func Measurements(ordered iter.Seq2[*Entry, error], rule selection.Rule) iter.Seq2[*Measurement, error] {
	return func(yield func(*Measurement, error) bool) {
		var group []*Measurement // in order of appearance
		var seen map[[16]byte]struct{}
		var of sweep.Cell
		flush := func() bool {
			for _, m := range group {
				if seen == nil || of != m.Cell() {
					seen, of = make(map[[16]byte]struct{}), m.Cell()
				}
				key := [16]byte([]byte(m.Measurement))
				_, m.Copy = seen[key]
				seen[key] = struct{}{}
				if len(m.Runs) > 0 {
					m.Combined = rule.Combine(m.Runs)
				}
				if !yield(m, nil) {
					return false
				}
			}
			group = group[:0]
			return true
		}
		for e, err := range ordered {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) > 0 && (group[0].Cell() != e.Cell() || group[0].Name != e.Name) && !flush() {
				return
			}
			i := slices.IndexFunc(group, func(m *Measurement) bool { return m.Target == e.Target })
			if i < 0 {
				i = len(group)
				group = append(group, &Measurement{Entry: e})
			}
			group[i].add(e)
		}
		flush()
	}
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
