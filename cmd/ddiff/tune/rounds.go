package tune

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"ddiff/internal/cli"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/metric"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// solution is one setting of a contest on one image.
type solution struct {
	contest  *contest
	settings string
	sha256   string
}

// tuning is a tuning in progress.
type tuning struct {
	*tuningPlan
	machine   embedded.Machine
	spec      *manifest.Spec
	objective tune.Objective
	rule      selection.Rule
	leftOut   manifest.Skips
	results   map[solution][]item.Result
	stderr    io.Writer // nil: no progress
}

// race runs the rounds of all races together until all are over.
func (t *tuning) race(ctx context.Context) error {
	for round := 1; ; round++ {
		want := map[solution]bool{}
		settings, images := 0, map[string]bool{}
		for _, c := range t.contests {
			for _, r := range c.races {
				keys, next := r.Next()
				settings += len(keys)
				for _, key := range keys {
					for _, img := range next {
						want[solution{c, key, img.SHA256}] = true
						images[img.SHA256] = true
					}
				}
			}
		}
		if len(want) == 0 {
			return nil
		}
		if t.stderr != nil {
			fmt.Fprintf(t.stderr, "round %d: %d settings, %d images\n", round, settings, len(images))
		}
		if err := t.solve(ctx, want, false); err != nil {
			return err
		}
		if err := t.settle(); err != nil {
			return err
		}
	}
}

// settle ends the round of each race.
func (t *tuning) settle() error {
	for _, c := range t.contests {
		for k, r := range c.races {
			keys, images := r.Next()
			if len(keys) == 0 {
				continue
			}
			values := map[solution]float64{}
			for _, key := range keys {
				for _, img := range images {
					s := solution{c, key, img.SHA256}
					f, ok, err := t.figures(s)
					if err != nil {
						return err
					}
					if values[s] = t.objective.Merit(f); !ok || t.hasFailure(s) {
						values[s] = math.NaN()
					} else if math.IsNaN(values[s]) {
						return t.undefined(img)
					}
					for _, res := range t.results[s] {
						c.byKey[key].spent[k] += res.Evaluations()
					}
				}
			}
			r.Settle(func(key string, img tune.Image) float64 { return values[solution{c, key, img.SHA256}] })
		}
	}
	return nil
}

// undefined is the error for an image without a figure of the objective.
func (t *tuning) undefined(img tune.Image) error {
	cause, remedy := "it has no truth", "use another --objective, such as closest_to_noise"
	if pixels := metric.Describe(string(t.objective)).Minimum; pixels > 0 {
		cause += fmt.Sprintf(", or is smaller than the %d pixels that %s requires", pixels, t.objective)
		remedy += ", or a larger --size"
	}
	return cli.Usage(fmt.Errorf("tune: %w: %s has no %s, because %s; %s", tune.ErrNoFigure, img.Name, t.objective, cause, remedy))
}

// hasFailure reports whether a run of a setting on an image was not restored. The rule would choose among the others.
func (t *tuning) hasFailure(s solution) bool {
	return slices.ContainsFunc(t.results[s], func(r item.Result) bool { return r.Outcome != item.OutcomeDone })
}

// figures returns the figures of a setting on an image: the means over its measurements. ok is false if a measurement was not
// restored.
func (t *tuning) figures(s solution) (mean item.Metrics, ok bool, err error) {
	runs := map[[32]byte][]item.Result{}
	var order [][32]byte
	list := slices.Clone(t.results[s])
	slices.SortFunc(list, func(a, b item.Result) int { // by content: items end in any order
		return cmp.Or(cmp.Compare(a.Item.Seed, b.Item.Seed), cmp.Compare(a.Item.ID, b.Item.ID))
	})
	for _, r := range list {
		key, err := r.Item.MeasurementKey()
		if err != nil {
			return mean, false, err
		}
		if runs[key] == nil {
			order = append(order, key)
		}
		runs[key] = append(runs[key], r)
	}
	n, names, sums := float64(len(order)), metric.Builtin().Names(), map[string]float64{}
	for _, key := range order {
		slices.SortFunc(runs[key], func(a, b item.Result) int { return cmp.Compare(a.Item.Run, b.Item.Run) })
		var done []*entry.Entry
		for _, r := range runs[key] {
			if r.Outcome == item.OutcomeDone {
				done = append(done, &entry.Entry{Figures: entry.NewFigures(r.Metrics)})
			}
		}
		if len(done) == 0 {
			return mean, false, nil
		}
		f := entry.Combine(t.rule, done)
		for _, name := range names {
			sums[name] += f.Of(name) / n
		}
	}
	mean = item.Metrics{}
	for _, name := range names {
		if v := sums[name]; statistic.Defined(v) {
			mean[name] = v
		}
	}
	return mean, len(order) > 0, nil
}

// solve runs the items of the wanted solutions and collects their results, and writes their report if it is wanted. Items with a
// stored result are not solved again.
func (t *tuning) solve(ctx context.Context, want map[solution]bool, report bool) error {
	names := map[string]bool{}
	for s := range want {
		for _, name := range t.names[s.sha256] {
			names[name] = true
		}
		delete(t.results, s)
	}
	spec := *t.spec
	spec.Split = nil // the wanted solutions decide
	return t.machine.WithCampaign(ctx, &spec, func(e embedded.Campaign) error {
		e.LeftOut = t.leftOut
		e.Rows = filterRows(e.Sources.Rows, func(r manifest.Row) bool { return names[r.Name] })
		e.Keep = func(it *item.Item) bool { return want[t.solutionOf(it)] }
		e.Settled = func(r item.Result) {
			s := t.solutionOf(&r.Item)
			isKnown := func(other item.Result) bool { return other.Item.ID == r.Item.ID }
			if !slices.ContainsFunc(t.results[s], isKnown) { // a second name of the image
				t.results[s] = append(t.results[s], r)
			}
		}
		run, w, err := e.Parts(e.Show.Entered)
		if err != nil {
			return err
		}
		e.Show.Begin()
		defer e.Show.Stop()
		if err := e.Process(ctx, run, w); err != nil || !report {
			return err
		}
		_, err = run.Close(context.WithoutCancel(ctx))
		return err
	})
}

// solutionOf returns the solution to which an item belongs, the zero one if it is not in the plan.
func (t *tuning) solutionOf(it *item.Item) solution {
	key, settings, err := contestOf(it)
	if err != nil {
		return solution{}
	}
	return solution{t.byKey[key], settings, tune.ImageOf(it).SHA256}
}
