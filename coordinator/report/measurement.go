package report

import (
	"iter"
	"slices"

	"ddiff/manifest"
)

// measurement is one measurement that was restored in one way, in any number of runs.
type measurement struct {
	*entry // of the first run

	items, failed, dead int
	done                []*entry // the finished runs
	runs                []scores // their scores
	combined            scores   // of the runs, if there are any
	// copy: the group has the measurement under an earlier name as well. A copy counts as items, and not in the figures.
	copy bool
}

func (m *measurement) add(e *entry) {
	m.items++
	switch e.Outcome {
	case manifest.OutcomeDone:
		m.done, m.runs = append(m.done, e), append(m.runs, e.Scores)
	case manifest.OutcomeFailed:
		m.failed++
	case manifest.OutcomeDead:
		m.dead++
	}
}

// measurements combines the runs of each measurement of a group by the rule. It holds the entries of one group and image
// name, and the digests of the group's measurements, at a time.
func measurements(ordered iter.Seq2[*entry, error], rule Rule) iter.Seq2[*measurement, error] {
	return func(yield func(*measurement, error) bool) {
		var group []*measurement // in order of appearance
		var seen map[[16]byte]struct{}
		var of Cell
		flush := func() bool {
			for _, m := range group {
				if seen == nil || of != m.group() {
					seen, of = make(map[[16]byte]struct{}), m.group()
				}
				key := [16]byte([]byte(m.Measurement))
				_, m.copy = seen[key]
				seen[key] = struct{}{}
				if len(m.runs) > 0 {
					m.combined = rule.combine(m.runs)
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
			if len(group) > 0 && (group[0].group() != e.group() || group[0].Name != e.Name) && !flush() {
				return
			}
			i := slices.IndexFunc(group, func(m *measurement) bool { return m.Target == e.Target })
			if i < 0 {
				i = len(group)
				group = append(group, &measurement{entry: e})
			}
			group[i].add(e)
		}
		flush()
	}
}
