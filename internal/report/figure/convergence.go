package figure

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/report/chart"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/statistic"
	"ddiff/restore/item"
)

// maxCurveSteps bounds the points of a convergence curve: evenly spaced steps of the longest trace, with the first and the
// last.
const maxCurveSteps = 100

// convergenceCurve is a curve of traces that a figure shows.
type convergenceCurve struct{ name, label string }

func convergenceCurves() []convergenceCurve {
	return []convergenceCurve{
		{"data_norm", "‖y − A(z)‖"}, {"primal_norm", "‖x − z‖"}, {"dual_norm", "‖u‖"}, {"psnr", "PSNR (dB)"},
	}
}

// traceValues are the curves of one trace in the order of convergenceCurves, nil for a curve that it lacks.
type traceValues struct {
	image  uint64
	steps  int
	curves [][]float64
}

// convergence is the figure of the solver's curves.
func (w *figureWriter) convergence(ctx context.Context, p *problemFigures) (*statFigure, error) {
	f := &statFigure{name: figureConvergence + p.slug, Chart: chart.Chart{Title: p.label + ": convergence"}}
	curves := convergenceCurves()
	panels := make([]chart.Panel, len(curves))
	for i, c := range curves {
		panels[i] = chart.Panel{XName: "step", YName: c.name, X: chart.Axis{Label: "step"}, Y: chart.Axis{Label: c.label}}
	}
	var images span
	sampledOnly, missing := false, 0
	for _, c := range p.cells {
		var chosen []*entry.Measurement
		untraced := 0
		for _, m := range c.measurements {
			if !m.Done[0].Has(item.FileTrace) {
				untraced++
			} else if len(chosen) < w.traces {
				chosen = append(chosen, m)
			}
		}
		traces, err := w.readTraces(ctx, chosen)
		if err != nil {
			return nil, err
		}
		missing += untraced + len(chosen) - len(traces)
		sampledOnly = sampledOnly || len(chosen) == w.traces && len(c.measurements) > w.traces
		for i := range curves {
			points := meanCurve(traces, i)
			if len(points) == 0 {
				continue
			}
			images.add(points[0].N)
			panels[i].Series = append(panels[i].Series, chart.Series{Label: c.label, Kind: chart.Curve, Points: points})
		}
	}
	for _, panel := range panels {
		if len(panel.Series) == 0 {
			continue
		}
		var values []float64
		for _, s := range panel.Series {
			for _, v := range s.Points {
				values = append(values, v.Y)
			}
		}
		panel.Y.Log = panel.YName != "psnr" && logarithmic(values, 10)
		f.Panels = append(f.Panels, panel)
	}
	if len(f.Panels) == 4 {
		f.Columns = 2
	}
	f.notes = append(f.notes,
		"Lines: means over measurements; bands: 95 % confidence intervals of the means, each image one cluster; n = "+images.text("image")+".",
		"Curves of the first finished run of each measurement.")
	if sampledOnly {
		f.notes = append(f.notes, sampleNote(w.traces))
	}
	if missing > 0 {
		f.notes = append(f.notes, plural(missing, "measurement")+" without a readable trace.")
	}
	return f, nil
}

// readTraces reads the traces of the items, in their order. A trace that cannot be read is left out and noted as lost.
func (w *figureWriter) readTraces(ctx context.Context, of []*entry.Measurement) ([]*traceValues, error) {
	found := make([]*traceValues, len(of))
	lost := make([]error, len(of))
	var group errgroup.Group
	group.SetLimit(result.ReadCalls)
	for i, m := range of {
		group.Go(func() error {
			found[i], lost[i] = w.readValues(ctx, m)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("draw figures: %w", err)
	}
	var out []*traceValues
	for i, t := range found {
		if lost[i] != nil {
			w.Lost = append(w.Lost, lost[i])
		} else {
			out = append(out, t)
		}
	}
	return out, nil
}

func (w *figureWriter) readValues(ctx context.Context, m *entry.Measurement) (*traceValues, error) {
	t, err := readTrace(ctx, w.store, m.Done[0].ID)
	if err != nil {
		return nil, err
	}
	out := &traceValues{image: m.Image, steps: len(t[item.CurveTimestep])}
	at := evenSteps(out.steps, maxCurveSteps)
	for _, c := range convergenceCurves() {
		values := t[c.name]
		var chosen []float64
		for _, k := range at {
			if values != nil {
				chosen = append(chosen, values[k])
			}
		}
		out.curves = append(out.curves, chosen)
	}
	return out, nil
}

// meanCurve returns the mean of a curve over the traces with its interval at each drawn step. Traces with another number
// of steps than the longest, which one approach does not have, are left out.
func meanCurve(traces []*traceValues, curve int) []chart.Point {
	steps := 0
	for _, t := range traces {
		if t.curves[curve] != nil {
			steps = max(steps, t.steps)
		}
	}
	var out []chart.Point
	for p, k := range evenSteps(steps, maxCurveSteps) {
		var values []float64
		var images []uint64
		for _, t := range traces {
			if t.steps == steps && t.curves[curve] != nil {
				v := t.curves[curve][p]
				if math.IsInf(v, 0) {
					v = math.NaN()
				}
				values, images = append(values, v), append(images, t.image)
			}
		}
		e := statistic.ClusterMean(values, images)
		out = append(out, interval(float64(k+1), e))
	}
	return out
}
