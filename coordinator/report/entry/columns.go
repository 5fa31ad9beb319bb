package entry

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// Columns chooses one version of each metric of a table, from the versions of all its results.
type Columns struct {
	// ids are all versions, in order of appearance, which count and solved share: the number of finished items with a
	// score, and whether workers computed it.
	ids    []string
	index  map[string]int
	count  []int
	solved []bool
	// items counts the finished items, any those with some version, by metric.
	items int
	any   map[string]int

	leaveOut bool              // a metric with several versions, instead of an error
	refused  []string          // the metrics that are left out, with the reason
	chosen   map[string]string // id by metric, after choose; empty for a metric that is left out
	Extra    []string          // the metrics that are no column of their own, sorted
}

// add counts the versions of a result, and moves its further scores to the entry.
func (c *Columns) add(e *Entry, r *manifest.Result) {
	if !e.Done() {
		return
	}
	if c.items++; c.index == nil {
		c.index, c.any = make(map[string]int), make(map[string]int)
	}
	var names []string
	see := func(id string, solved bool) int {
		at, known := c.index[id]
		if !known {
			at = len(c.ids)
			c.ids, c.index[id] = append(c.ids, id), at
			c.count, c.solved = append(c.count, 0), append(c.solved, false)
		}
		c.count[at]++
		c.solved[at] = c.solved[at] || solved
		if name := manifest.MetricName(id); !slices.Contains(names, name) {
			names = append(names, name)
			c.any[name]++
		}
		return at
	}
	for name := range result.BuiltinMetrics() {
		if *result.MetricField(&r.Metrics, name) != nil {
			see(result.SolvedID(r, name), true)
		}
	}
	for _, s := range r.Scores {
		if s.Value == nil {
			continue
		}
		if e.Scored == nil {
			e.Scored = make(map[int]float64)
		}
		e.Scored[see(s.Metric, false)] = *s.Value
	}
}

// choose decides on the versions: the only one, or that of the workers if it covers all scored items. The error wraps
// [result.ErrVersions].
func (c *Columns) choose() error {
	c.chosen = make(map[string]string)
	versions := make(map[string][]int)
	for at, id := range c.ids {
		name := manifest.MetricName(id)
		versions[name] = append(versions[name], at)
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		all := versions[name]
		at := all[0]
		if len(all) > 1 {
			by := func(at int) bool { return c.solved[at] }
			first := slices.IndexFunc(all, by)
			if first < 0 || slices.ContainsFunc(all[first+1:], by) || c.count[all[first]] < c.any[name] {
				err := c.refuse(name, all)
				if !c.leaveOut {
					return err
				}
				c.refused = append(c.refused, err.Error())
				if result.BuiltinMetrics()[name] != "" {
					c.chosen[name] = "" // a fixed column without figures
				}
				continue
			}
			at = all[first]
		}
		c.chosen[name] = c.ids[at]
		if _, own := result.BuiltinMetrics()[name]; !own {
			c.Extra = append(c.Extra, name)
		}
	}
	return nil
}

// refuse names the versions of a metric and the remedies.
func (c *Columns) refuse(name string, all []int) error {
	var texts []string
	for _, at := range all {
		texts = append(texts, fmt.Sprintf("%s (%d of %d items)", c.ids[at], c.count[at], c.items))
	}
	slices.Sort(texts)
	most := slices.MaxFunc(all, func(a, b int) int { return c.count[a] - c.count[b] })
	return fmt.Errorf("%w of %s: %s; choose one with --metric-version %s, select results with --where, or compute the missing scores with ddiff score",
		result.ErrVersions, name, strings.Join(texts, ", "), c.ids[most])
}

// CommonVersion returns the version of a metric that both sides of a comparison have. The error wraps [result.ErrVersions].
func CommonVersion(a, b *Columns, metric string) (string, error) {
	x, y := a.chosen[metric], b.chosen[metric]
	switch {
	case a.items == 0 || b.items == 0: // there is nothing to compare
		return x + y, nil
	case x == "" && y == "":
		return "", fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score", result.ErrVersions, metric)
	case x == "" || y == "":
		return "", fmt.Errorf("%w: only one side has scores of %s (%s); compute those of the other with ddiff score", result.ErrVersions, metric, x+y)
	case x != y:
		return "", fmt.Errorf("%w of %s: A has %s, B has %s; name one that both have, as in --metric %s, or compute it with ddiff score", result.ErrVersions, metric, x, y, x)
	}
	return x, nil
}

// Figure returns the score of a metric, NaN if there is none.
func (c *Columns) Figure(s *selection.Scores, metric string) float64 {
	if own := s.ByName()[metric]; own != nil {
		return *own
	}
	if at := slices.Index(c.Extra, metric); at >= 0 && at < len(s.Extra) {
		return s.Extra[at]
	}
	return math.NaN()
}

// apply sets the figures of an entry to the chosen versions.
func (c *Columns) apply(e *Entry) {
	if !e.Done() {
		return
	}
	value := func(id string) float64 {
		if id == "" {
			return math.NaN()
		}
		if v, ok := e.Scored[c.index[id]]; ok {
			return v
		}
		return math.NaN()
	}
	s := &e.Scores
	for name, field := range s.ByName() {
		if id, some := c.chosen[name]; some && (id == "" || !c.solved[c.index[id]]) {
			*field = value(id)
			if name == "psnr" {
				s.Baseline = math.NaN()
			}
		}
	}
	s.Extra = nil
	for _, name := range c.Extra {
		s.Extra = append(s.Extra, value(c.chosen[name]))
	}
}

// Text lists the versions of the table.
func (c *Columns) Text() string {
	ids := slices.Sorted(maps.Values(c.chosen))
	return strings.Join(slices.DeleteFunc(ids, func(id string) bool { return id == "" }), ";")
}

// Coverage returns the versions of the scores by metric, the metrics whose scores were computed after solving, sorted, and a note for
// each metric that lacks scores.
func (c *Columns) Coverage() (ids map[string]string, later, notes []string) {
	for name, id := range c.chosen {
		if id != "" {
			if ids == nil {
				ids = make(map[string]string)
			}
			ids[name] = id
		}
	}
	for _, refused := range c.refused {
		notes = append(notes, "Left out: "+refused+".")
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		at := c.index[ids[name]]
		if c.solved[at] {
			continue
		}
		later = append(later, name)
		if n := c.count[at]; n < c.items {
			notes = append(notes, fmt.Sprintf("%d of %d finished items have no score of %s; ddiff score computes it where there is a truth.",
				c.items-n, c.items, ids[name]))
		}
	}
	return ids, later, notes
}
