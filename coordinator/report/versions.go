package report

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"ddiff/manifest"
)

// builtin are the columns of the scores that workers compute, with the versions of results that name none.
func builtin() map[string]string {
	return map[string]string{"psnr": "psnr@1", "ssim": "ssim@1", "residual": "residual@1", "psnr_y": "psnr_y@1", "haarpsi": "haarpsi@1"}
}

// metricField returns the score of a worker in the column, or nil for another column.
func metricField(m *manifest.Metrics, column string) **float64 {
	switch column {
	case "psnr":
		return &m.PSNR
	case "ssim":
		return &m.SSIM
	case "residual":
		return &m.Residual
	case "psnr_y":
		return &m.PSNRLuma
	case "haarpsi":
		return &m.HaarPSI
	}
	return nil
}

// solvedID returns the version of the worker's score in a column.
func solvedID(r *manifest.Result, column string) string {
	if id := r.MetricIDs[column]; id != "" {
		return id
	}
	return builtin()[column]
}

// Versions pins the versions of metrics: a table has one version of each. The zero value pins none.
type Versions struct {
	pinned map[string]string
}

// ParseVersions reads versioned ids such as psnr@1 and lpips_vgg@1:1f2e3d4c, at most one for each metric. The error wraps
// [ErrVersions].
func ParseVersions(ids []string) (Versions, error) {
	v := Versions{pinned: make(map[string]string)}
	for _, id := range ids {
		if err := checkMetricID(id); err != nil {
			return v, fmt.Errorf("%w: %w", ErrVersions, err)
		}
		name := manifest.MetricName(id)
		if other, twice := v.pinned[name]; twice && other != id {
			return v, fmt.Errorf("%w of %s: %s and %s; give one", ErrVersions, name, other, id)
		}
		v.pinned[name] = id
	}
	return v, nil
}

// Select yields the results without scores of other versions of the pinned metrics. Its last pair has an error that wraps
// [ErrVersions] if no result has a score of a pinned version.
func (v Versions) Select(results iter.Seq2[manifest.Result, error]) iter.Seq2[manifest.Result, error] {
	if len(v.pinned) == 0 {
		return results
	}
	return func(yield func(manifest.Result, error) bool) {
		found := make(map[string]bool)
		done := false
		for r, err := range results {
			if err == nil && r.Outcome == manifest.OutcomeDone {
				done = true
				v.apply(&r, found)
			}
			if !yield(r, err) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.pinned)) {
			if done && !found[name] {
				yield(manifest.Result{}, fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score", ErrVersions, v.pinned[name]))
				return
			}
		}
	}
}

func (v Versions) apply(r *manifest.Result, found map[string]bool) {
	r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s manifest.Score) bool {
		name := manifest.MetricName(s.Metric)
		id, pinned := v.pinned[name]
		if pinned && id == s.Metric && s.Value != nil {
			found[name] = true
		}
		return pinned && id != s.Metric
	})
	for name, id := range v.pinned {
		field := metricField(&r.Metrics, name)
		switch {
		case field == nil || *field == nil:
		case solvedID(r, name) == id:
			found[name] = true
		default:
			*field = nil
			if name == "psnr" { // its baseline is of the same version
				r.Metrics.BaselinePSNR = nil
			}
		}
	}
}

// columns chooses one version of each metric of a table, from the versions of all its results.
type columns struct {
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
	extra    []string          // the metrics that are no column of their own, sorted
}

// add counts the versions of a result, and moves its further scores to the entry.
func (c *columns) add(e *entry, r *manifest.Result) {
	if !e.done() {
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
	for name := range builtin() {
		if *metricField(&r.Metrics, name) != nil {
			see(solvedID(r, name), true)
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
// [ErrVersions].
func (c *columns) choose() error {
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
				if builtin()[name] != "" {
					c.chosen[name] = "" // a fixed column without figures
				}
				continue
			}
			at = all[first]
		}
		c.chosen[name] = c.ids[at]
		if _, own := builtin()[name]; !own {
			c.extra = append(c.extra, name)
		}
	}
	return nil
}

// refuse names the versions of a metric and the remedies.
func (c *columns) refuse(name string, all []int) error {
	var texts []string
	for _, at := range all {
		texts = append(texts, fmt.Sprintf("%s (%d of %d items)", c.ids[at], c.count[at], c.items))
	}
	slices.Sort(texts)
	most := slices.MaxFunc(all, func(a, b int) int { return c.count[a] - c.count[b] })
	return fmt.Errorf("%w of %s: %s; choose one with --metric-version %s, select results with --where, or compute the missing scores with ddiff score",
		ErrVersions, name, strings.Join(texts, ", "), c.ids[most])
}

// onlyScores drops the later scores of other metrics, on which a comparison of one metric does not depend; "" drops all.
func onlyScores(results iter.Seq2[manifest.Result, error], metric string) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for r, err := range results {
			r.Scores = slices.DeleteFunc(slices.Clone(r.Scores), func(s manifest.Score) bool { return manifest.MetricName(s.Metric) != metric })
			if !yield(r, err) {
				return
			}
		}
	}
}

// commonVersion returns the version of a metric that both sides of a comparison have. The error wraps [ErrVersions].
func commonVersion(a, b *columns, metric string) (string, error) {
	x, y := a.chosen[metric], b.chosen[metric]
	switch {
	case a.items == 0 || b.items == 0: // there is nothing to compare
		return x + y, nil
	case x == "" && y == "":
		return "", fmt.Errorf("%w: no result has a score of %s; compute it with ddiff score", ErrVersions, metric)
	case x == "" || y == "":
		return "", fmt.Errorf("%w: only one side has scores of %s (%s); compute those of the other with ddiff score", ErrVersions, metric, x+y)
	case x != y:
		return "", fmt.Errorf("%w of %s: A has %s, B has %s; name one that both have, as in --metric %s, or compute it with ddiff score", ErrVersions, metric, x, y, x)
	}
	return x, nil
}

// figures are the scores of the builtin metrics, by name.
func (s *scores) figures() map[string]*float64 {
	return map[string]*float64{"psnr": &s.PSNR, "ssim": &s.SSIM, "residual": &s.Residual, "psnr_y": &s.PSNRLuma, "haarpsi": &s.HaarPSI}
}

// figure returns the score of a metric, NaN if there is none.
func (c *columns) figure(s *scores, metric string) float64 {
	if own := s.figures()[metric]; own != nil {
		return *own
	}
	if at := slices.Index(c.extra, metric); at >= 0 && at < len(s.Extra) {
		return s.Extra[at]
	}
	return math.NaN()
}

// apply sets the figures of an entry to the chosen versions.
func (c *columns) apply(e *entry) {
	if !e.done() {
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
	for name, field := range s.figures() {
		if id, some := c.chosen[name]; some && (id == "" || !c.solved[c.index[id]]) {
			*field = value(id)
			if name == "psnr" {
				s.Baseline = math.NaN()
			}
		}
	}
	s.Extra = nil
	for _, name := range c.extra {
		s.Extra = append(s.Extra, value(c.chosen[name]))
	}
}

// text lists the versions of the table.
func (c *columns) text() string {
	ids := slices.Sorted(maps.Values(c.chosen))
	return strings.Join(slices.DeleteFunc(ids, func(id string) bool { return id == "" }), ";")
}

// coverage returns the versions of the scores by metric, the metrics whose scores were computed after solving, sorted, and a note for
// each metric that lacks scores.
func (c *columns) coverage() (ids map[string]string, later, notes []string) {
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
