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
	versions map[string]*version // by id
	// items counts the finished items, scored those with some version, by metric.
	items  int
	scored map[string]int

	leaveOut bool              // a metric with several versions, instead of an error
	refused  []string          // the metrics that are left out, with the reason
	chosen   map[string]string // id by metric, after choose; empty for a metric that is left out
	Extra    []string          // the metrics that are no column of their own, sorted
}

// version is a version of a metric.
type version struct {
	count  int  // finished items with a score
	solved bool // workers computed it
}

func newColumns(leaveOut bool) *Columns {
	return &Columns{leaveOut: leaveOut, versions: make(map[string]*version), scored: make(map[string]int), chosen: make(map[string]string)}
}

// add counts the versions of a result, and moves its further scores to the entry.
func (c *Columns) add(e *Entry, r *manifest.Result) {
	if !e.Done() {
		return
	}
	c.items++
	var names []string
	see := func(id string, solved bool) {
		v := c.versions[id]
		if v == nil {
			v = &version{}
			c.versions[id] = v
		}
		v.count++
		v.solved = v.solved || solved
		if name := manifest.MetricName(id); !slices.Contains(names, name) {
			names = append(names, name)
			c.scored[name]++
		}
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
			e.Scored = make(map[string]float64)
		}
		e.Scored[s.Metric] = *s.Value
		see(s.Metric, false)
	}
}

// choose decides on the versions: the only one, or that of the workers if it covers all scored items. The error wraps
// [result.ErrVersions].
func (c *Columns) choose() error {
	of := make(map[string][]string) // ids by metric
	for _, id := range slices.Sorted(maps.Keys(c.versions)) {
		of[manifest.MetricName(id)] = append(of[manifest.MetricName(id)], id)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		ids := of[name]
		solved := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !c.versions[id].solved })
		_, own := result.BuiltinMetrics()[name]
		switch {
		case len(ids) == 1:
			c.chosen[name] = ids[0]
		case len(solved) == 1 && c.versions[solved[0]].count == c.scored[name]:
			c.chosen[name] = solved[0]
		case !c.leaveOut:
			return c.refuse(name, ids)
		default:
			c.refused = append(c.refused, c.refuse(name, ids).Error())
			if own {
				c.chosen[name] = "" // a fixed column without figures
			}
			continue
		}
		if !own {
			c.Extra = append(c.Extra, name)
		}
	}
	return nil
}

// refuse names the versions of a metric and the remedies.
func (c *Columns) refuse(name string, ids []string) error {
	var texts []string
	for _, id := range ids {
		texts = append(texts, fmt.Sprintf("%s (%d of %d items)", id, c.versions[id].count, c.items))
	}
	most := slices.MaxFunc(ids, func(a, b string) int { return c.versions[a].count - c.versions[b].count })
	return fmt.Errorf("%w of %s: %s; choose one with --metric-version %s, select results with --where, or compute the missing scores with ddiff score",
		result.ErrVersions, name, strings.Join(texts, ", "), most)
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
		if v, ok := e.Scored[id]; ok {
			return v
		}
		return math.NaN()
	}
	s := &e.Scores
	for name, field := range s.ByName() {
		if id, some := c.chosen[name]; some && (id == "" || !c.versions[id].solved) {
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
		v := c.versions[ids[name]]
		if v.solved {
			continue
		}
		later = append(later, name)
		if n := v.count; n < c.items {
			notes = append(notes, fmt.Sprintf("%d of %d finished items have no score of %s; ddiff score computes it where there is a truth.",
				c.items-n, c.items, ids[name]))
		}
	}
	return ids, later, notes
}
