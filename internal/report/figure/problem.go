package figure

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/chart"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
)

// problemFigures has what the figures of one problem show.
type problemFigures struct {
	// label is the task's name for people with the varying properties of the problem, slug the ending of file names.
	label, slug string
	cells       []*problemCell
	hidden      int // approaches that are not drawn
	rule        selection.Rule
}

// problemCell is one approach to the problem. Its finished measurements are in the order of their digests, so that the first ones are
// a random sample, which is the same for all approaches to equal measurements.
type problemCell struct {
	row          *aggregate.Row
	label        string
	measurements []*entry.Measurement
}

// dots are the measurements of a scatter plot.
func (c *problemCell) dots() []*entry.Measurement {
	return c.measurements[:min(maxDots, len(c.measurements))]
}

// dotOf is the point of a measurement in a scatter plot.
func dotOf(m *entry.Measurement, x, y float64) chart.Point {
	p := chart.At(x, y)
	p.Item, p.Image = m.ID, m.Name
	return p
}

// problems stores the figures of the first maxProblems problems and returns the mean network evaluations per image of each cell.
func (w *figureWriter) problems(ctx context.Context) (map[sweep.Cell]float64, error) {
	var drawn []*aggregate.Row
	evaluations := make(map[sweep.Cell]float64)
	for i := range w.summary.Rows {
		r := &w.summary.Rows[i]
		finished := r.Finished()
		if !r.Resolved() || len(finished) == 0 {
			continue
		}
		drawn = append(drawn, r)
		for _, m := range finished {
			evaluations[r.Cell] += float64(m.Done[0].Evaluations * runsUsed(w.summary.Rule, len(m.Done)))
		}
		evaluations[r.Cell] /= float64(len(finished))
	}
	problems := slices.Collect(sweep.Blocks(drawn, func(r *aggregate.Row) sweep.Problem { return r.Problem }))
	for _, approaches := range problems[:min(maxProblems, len(problems))] {
		p := w.newProblem(approaches[0])
		p.hidden = max(0, len(approaches)-maxLines)
		for _, r := range approaches[:len(approaches)-p.hidden] {
			c := &problemCell{row: r, label: w.summary.Varying.ApproachText(r), measurements: r.Finished()}
			slices.SortFunc(c.measurements, func(a, b *entry.Measurement) int { return bytes.Compare(a.Measurement[:], b.Measurement[:]) })
			p.cells = append(p.cells, c)
		}
		if err := w.problem(ctx, p, len(problems)); err != nil {
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

// problem stores the figures of one of so many problems.
func (w *figureWriter) problem(ctx context.Context, p *problemFigures, problems int) error {
	convergence, err := w.convergence(ctx, p)
	if err != nil {
		return err
	}
	items, failed := 0, 0
	for _, c := range p.cells {
		items += c.row.Items
		failed += c.row.Failed + c.row.Dead
	}
	for _, f := range []*statFigure{convergence, p.pairs(), p.residuals()} {
		if failed > 0 {
			f.notes = append(f.notes, plural(failed, "item")+" of "+plural(items, "item")+" failed.")
		}
		f.omit(p.hidden, "further approach")
		if problems > maxProblems {
			f.notes = append(f.notes, fmt.Sprintf("The first %d of %d problems have such figures.", maxProblems, problems))
		}
		if err := w.add(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// runsUsed is the number of runs that a rule needs for one image.
func runsUsed(rule selection.Rule, runs int) int {
	if rule == selection.First || rule == selection.Mean {
		return 1
	}
	return runs
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
