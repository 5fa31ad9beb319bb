package entry

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unique"

	"ddiff/internal/report/result"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
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
	place    map[string]int    // of the figures
	// Further are the metrics with scores beside those of [metric.Builtin], sorted.
	Further []string
}

// version is a version of a metric.
type version struct {
	count  int  // finished items with a score
	solved bool // workers computed it
}

func newColumns(leaveOut bool) *Columns {
	return &Columns{leaveOut: leaveOut, versions: make(map[string]*version), scored: make(map[string]int), chosen: make(map[string]string), place: make(map[string]int)}
}

// add counts the versions of the scores of a result, which the entry keeps until one is chosen.
func (c *Columns) add(e *Entry, r *item.Result) {
	if !e.Done() {
		return
	}
	c.items++
	var names []string
	see := func(id string, value float64, solved bool) {
		id = unique.Make(id).Value() // results share the names
		e.scores = append(e.scores, score{id, value})
		name := metric.NameOf(id)
		if name == id { // without a version
			return
		}
		v := c.versions[id]
		if v == nil {
			v = &version{}
			c.versions[id] = v
		}
		v.count++
		v.solved = v.solved || solved
		if !slices.Contains(names, name) {
			names = append(names, name)
			c.scored[name]++
		}
	}
	for name, value := range r.Metrics {
		see(cmp.Or(r.MetricIDs[name], name), value, true)
	}
	for _, s := range r.Scores {
		if s.Value != nil {
			see(s.Metric, *s.Value, false)
		}
	}
	e.values = append([]float64{r.Seconds}, costs(r.Cost)...)
}

// choose decides on the versions: the only one, or that of the workers if it covers all scored items. The error wraps
// [result.ErrVersions].
func (c *Columns) choose() error {
	of := make(map[string][]string) // ids by metric
	for _, id := range slices.Sorted(maps.Keys(c.versions)) {
		of[metric.NameOf(id)] = append(of[metric.NameOf(id)], id)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		ids := of[name]
		solved := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !c.versions[id].solved })
		switch {
		case len(ids) == 1:
			c.chosen[name] = ids[0]
		case len(solved) == 1 && c.versions[solved[0]].count == c.scored[name]:
			c.chosen[name] = solved[0]
		case !c.leaveOut:
			return c.refuse(name, ids)
		default:
			c.refused, c.chosen[name] = append(c.refused, c.refuse(name, ids).Error()), ""
			continue
		}
		if _, builtin := metric.Builtin().Find(name); !builtin {
			c.Further = append(c.Further, name)
		}
	}
	for k, name := range c.Figures() {
		c.place[name] = k
	}
	return nil
}

// Names are the metrics of the table.
func (c *Columns) Names() []string { return append(metric.Builtin().Names(), c.Further...) }

// refuse names the versions of a metric and the remedies.
func (c *Columns) refuse(name string, ids []string) error {
	var texts []string
	for _, id := range ids {
		texts = append(texts, fmt.Sprintf("%s (%d of %d items)", id, c.versions[id].count, c.items))
	}
	most := slices.MaxFunc(ids, func(a, b string) int { return c.versions[a].count - c.versions[b].count })
	return fmt.Errorf("%w of %s: %s; choose one with --metric-version %s (ddiff compare: --metric), select results with --where, "+
		"or compute the missing scores with ddiff score",
		result.ErrVersions, name, strings.Join(texts, ", "), most)
}

// CommonVersion returns the version of a metric that both sides of a comparison have. The error wraps [result.ErrVersions].
func CommonVersion(a, b *Columns, name string) (string, error) {
	x, y := a.chosen[name], b.chosen[name]
	switch {
	case a.items == 0 || b.items == 0: // there is nothing to compare
		return x + y, nil
	case x == "" && y == "":
		return "", fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score where there is a truth, or give another metric, such as residual",
			result.ErrVersions, name)
	case x == "" || y == "":
		return "", fmt.Errorf("%w: only one side has scores of %s (%s); compute those of the other with ddiff score", result.ErrVersions, name, x+y)
	case x != y:
		return "", fmt.Errorf("%w of %s: A has %s, B has %s; name one that both have, as in --metric %s, or compute it with ddiff score", result.ErrVersions, name, x, y, x)
	}
	return x, nil
}

// apply gives an entry its figures, with the scores of the chosen versions. A version of the workers includes the scores of results that state none.
func (c *Columns) apply(e *Entry) {
	if !e.Done() {
		return
	}
	find := func(names ...string) float64 {
		for _, s := range e.scores {
			if slices.Contains(names, s.id) && !math.IsInf(s.value, 0) {
				return s.value
			}
		}
		return math.NaN()
	}
	work := e.values
	e.Figures = Figures{c.place, make([]float64, 0, len(c.place))}
	for _, name := range c.Names() {
		v := math.NaN()
		switch id, chosen := c.chosen[name]; {
		case !chosen || id != "" && c.versions[id].solved:
			v = find(id, name)
		case id != "":
			v = find(id)
		}
		e.values = append(e.values, v)
	}
	baseline, variance := math.NaN(), e.Noise*e.Noise
	if id, chosen := c.chosen[metric.NamePSNR]; !chosen || id != "" && c.versions[id].solved {
		baseline = find(Baseline) // it is of the same version
	}
	if e.Photons > 0 {
		variance = find(item.NoiseVariance)
	}
	ratio := e.Of(metric.NameResidual)/variance + 1
	if variance == 0 {
		ratio = math.NaN()
	}
	e.values = append(append(e.values, baseline, ratio), work...)
	e.scores = nil
}

// Figures are the names of the figures of the table, without those of some results alone.
func (c *Columns) Figures() []string {
	return append(append(c.Names(), Baseline, Ratio, Seconds), CostNames()...)
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
