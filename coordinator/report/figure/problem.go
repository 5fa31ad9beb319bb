package figure

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/chart"
	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
)

// problemFigures collects what the figures of one problem show, and holds a bounded part of it.
type problemFigures struct {
	// label is the task's name for people with the varying properties of the problem, slug the ending of file names.
	label, slug string
	cells       []*problemCell
	hidden      int // approaches that are not drawn
	rule        selection.Rule
}

// problemCell is one approach to the problem.
type problemCell struct {
	row        *aggregate.Row
	label      string
	psnr, gain histogram
	sample     sample
}

// sample holds the measurements with the lowest digests. That is a random sample, which is the same for all approaches to
// equal measurements, in any order of the results.
type sample struct {
	limit  int
	seen   int
	chosen []sampled // in the order of the keys
}

// sampled is one measurement of a sample.
type sampled struct {
	// key is the digest of the measurement and its image's name.
	key        string
	image      uint64
	name, item string
	// psnr and ratio are of the runs combined by the rule: in dB; mean square residual over the variance of the noise.
	psnr, ratio float64
	// traced reports that the item, the first finished run, has a trace.
	traced bool
}

// at is the point of the measurement in a scatter plot.
func (v *sampled) at(x, y float64) chart.Point {
	p := chart.At(x, y)
	p.Item, p.Image = v.item, v.name
	return p
}

func (s *sample) add(v sampled) {
	s.seen++
	at, _ := slices.BinarySearchFunc(s.chosen, v, func(a, b sampled) int { return strings.Compare(a.key, b.key) })
	if at < s.limit {
		s.chosen = slices.Insert(s.chosen, at, v)
		s.chosen = s.chosen[:min(len(s.chosen), s.limit)]
	}
}

// isPartial reports whether the sample lacks measurements that were added.
func (s *sample) isPartial() bool { return s.seen > s.limit }

// find returns the measurement with the key, or nil.
func (s *sample) find(key string) *sampled {
	at, ok := slices.BinarySearchFunc(s.chosen, key, func(a sampled, k string) int { return strings.Compare(a.key, k) })
	if !ok {
		return nil
	}
	return &s.chosen[at]
}

func (c *problemCell) add(m *entry.Measurement) {
	c.psnr.add(m.Combined.PSNR)
	c.gain.add(m.Combined.PSNR - m.Combined.Baseline)
	combined := *m.Entry
	combined.Scores = m.Combined
	c.sample.add(sampled{
		key: string(m.Measurement[:]), image: m.Image, name: m.Name, item: m.Done[0].ID,
		psnr: m.Combined.PSNR, ratio: combined.ResidualRatio(), traced: m.Done[0].Has(manifest.FileTrace),
	})
}

// problems stores the figures of the first maxProblems problems and returns the mean network evaluations per image of each cell.
func (w *figureWriter) problems(ctx context.Context, groups []*entry.Group) (map[sweep.Cell]float64, error) {
	rows := make(map[sweep.Cell]*aggregate.Row)
	for i := range w.summary.Rows {
		rows[w.summary.Rows[i].Cell()] = &w.summary.Rows[i]
	}
	var drawn []*entry.Group
	evaluations := make(map[sweep.Cell]float64)
	for _, g := range groups {
		finished := g.Finished()
		if rows[g.Cell] == nil || !g.Resolved() || len(finished) == 0 {
			continue
		}
		drawn = append(drawn, g)
		for _, m := range finished {
			evaluations[g.Cell] += float64(m.Done[0].Evaluations * runsUsed(w.summary.Rule, len(m.Done)))
		}
		evaluations[g.Cell] /= float64(len(finished))
	}
	limits := w.limits.divide(w.summary)
	problems := slices.Collect(sweep.Blocks(drawn, func(g *entry.Group) sweep.Problem { return g.Problem }))
	for _, approaches := range problems[:min(maxProblems, len(problems))] {
		p := w.newProblem(rows[approaches[0].Cell])
		p.hidden = max(0, len(approaches)-maxLines)
		for _, g := range approaches[:len(approaches)-p.hidden] {
			row := rows[g.Cell]
			c := &problemCell{row: row, label: w.summary.Varying.ApproachText(row), sample: sample{limit: maxDots}}
			for _, m := range g.Finished() {
				c.add(m)
			}
			p.cells = append(p.cells, c)
		}
		if err := w.problem(ctx, p, limits); err != nil {
			return nil, err
		}
	}
	return evaluations, nil
}

func (w *figureWriter) newProblem(row *aggregate.Row) *problemFigures {
	p := &problemFigures{label: row.Label, slug: row.Task, rule: w.summary.Rule}
	if text := w.summary.Varying.ProblemText(row); text != "" {
		p.label += ", " + text
		p.slug += "_" + strings.NewReplacer("σ ", "sigma", "=", "", ", ", "_", " ", "_").Replace(text)
	}
	return p
}

// problem stores the figures of one problem.
func (w *figureWriter) problem(ctx context.Context, p *problemFigures, limits traceLimits) error {
	convergence, err := w.convergence(ctx, p, limits.line)
	if err != nil {
		return err
	}
	for _, f := range append([]*statFigure{convergence, p.pairs(), p.residuals()}, p.histograms()...) {
		f.notes = append(f.notes, p.notes()...)
		if limits.problems > maxProblems {
			f.notes = append(f.notes, fmt.Sprintf("The first %d of %d problems have such figures.", maxProblems, limits.problems))
		}
		if err := w.add(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// notes are the sentences of all figures of the problem.
func (p *problemFigures) notes() []string {
	var out []string
	items, failed := 0, 0
	for _, c := range p.cells {
		items += c.row.Items
		failed += c.row.Failed + c.row.Dead
	}
	if failed > 0 {
		out = append(out, plural(failed, "item")+" of "+plural(items, "item")+" failed.")
	}
	if p.hidden > 0 {
		out = append(out, "Not drawn: "+plural(p.hidden, "further approach")+".")
	}
	return out
}

// runsUsed is the number of runs that a rule needs for one image.
func runsUsed(rule selection.Rule, runs int) int {
	if rule == selection.First || rule == selection.Mean {
		return 1
	}
	return runs
}

// divide shares the traces among the lines of the report, and counts its problems.
func (l traceLimits) divide(s aggregate.Summary) traceLimits {
	lines, inProblem, problems := 0, 0, 0
	var of sweep.Problem
	for i := range s.Rows {
		r := &s.Rows[i]
		if !r.Cell().Resolved() || r.Images == 0 {
			continue
		}
		if problems == 0 || of != r.Problem {
			of, inProblem = r.Problem, 0
			problems++
		}
		if inProblem++; problems <= maxProblems && inProblem <= maxLines {
			lines++
		}
	}
	return traceLimits{total: l.total, line: min(l.line, l.total/max(1, lines)), problems: problems}
}

// plural states a count with its unit.
func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	if strings.HasSuffix(unit, "ch") {
		unit += "e"
	}
	return strconv.Itoa(n) + " " + unit + "s"
}
