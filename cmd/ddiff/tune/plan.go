package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"ddiff/internal/cli"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/prior"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
)

// contest is a problem and a method: the settings that are compared, and the images.
type contest struct {
	problem sweep.Problem
	method  string
	prior   string
	files   item.Task    // operator, mask and kernel of the task
	cells   []*tunedCell // in the order of the campaign
	byKey   map[string]*tunedCell
	images  map[string]tune.Image
	races   []*tune.Race // by fold
}

// tunedCell is one setting of a contest.
type tunedCell struct {
	settings     string // in one text
	solver       json.RawMessage
	params       map[string]float64 // of the operator, complete
	steps        int                // of a run
	perRun, runs int                // network evaluations of a run, and runs of a measurement
	spent        []int              // by fold: evaluations in races
}

// evaluations is the number of network evaluations per measurement.
func (t *tunedCell) evaluations() int { return t.perRun * t.runs }

func (c *contest) describe() string { return problemText(c.problem) + ", " + c.method }

// problemText names a problem in messages.
func problemText(p sweep.Problem) string {
	parts := []string{p.Task}
	if p.Params != "" {
		parts = append(parts, strings.ReplaceAll(p.Params, ";", " "))
	}
	parts = append(parts, fmt.Sprintf("sigma=%s", p.Sigma))
	if p.Photons > 0 {
		parts = append(parts, fmt.Sprintf("photons=%g", p.Photons))
	}
	return strings.Join(append(parts, p.Size), " ")
}

// contestKey identifies a contest.
type contestKey struct {
	problem sweep.Problem
	method  string
	prior   string
}

// contestOf returns the contest and the settings of an item. Masks and kernels of tasks are problems of their own.
func contestOf(it *item.Item) (key contestKey, settings string, err error) {
	cell, err := sweep.CellOf(it)
	if it.FromTask {
		cell.Params = sweep.Join(cell.Params, sweep.Files(it))
	}
	return contestKey{cell.Problem, cell.Method, cell.Prior}, cell.Settings, err
}

// tuningPlan has everything that a tuning compares.
type tuningPlan struct {
	methods  method.Set
	contests []*contest // in the order of the campaign
	byKey    map[contestKey]*contest
	fromTask map[string]bool // by task whose items have masks or kernels: they are the task's, see item.Item
	images   []tune.Image
	names    map[string][]string // names of rows by digest
	folds    []tune.Fold
	failed   []item.Result
	skips    manifest.Skips
}

// planTuning reads the dataset and divides its images. It solves nothing.
func planTuning(ctx context.Context, spec *manifest.Spec, c manifest.Catalogue, p *prior.Description, sources cli.Datasets) (*tuningPlan, error) {
	if slices.ContainsFunc(spec.Tasks, func(t item.Task) bool { return *spec.Effective(t).Sigma == item.SigmaAuto }) {
		return nil, cli.Usage(errors.New("tune: settings are chosen for one noise level; give sigma as a number"))
	}
	all := *spec
	all.Split = nil // both sides
	t := &tuningPlan{methods: c.Methods, byKey: map[contestKey]*contest{}, fromTask: map[string]bool{}, names: map[string][]string{}}
	var own error
	sharder, err := shard.New(shard.Config{
		Spec: &all, Prior: p, Sources: sources, Catalogue: c, Skipped: t.skips.Add,
		Rows: filterRows(sources.Rows, func(r manifest.Row) bool {
			if len(r.Overrides.Params) > 0 || r.Overrides.Sigma != nil || r.Overrides.Photons != nil {
				own = cli.Usage(fmt.Errorf("tune: row %s has its own sigma, photons or parameters; leave these columns out with dataset.columns, "+
					"or make a list for each problem", r.Name))
			}
			return own == nil
		}),
	})
	if err != nil {
		return nil, err
	}
	for w, err := range sharder.Windows(ctx, shard.Position{}) {
		if own != nil || err != nil {
			return nil, errors.Join(own, err)
		}
		for i := range w.Items {
			if err := t.add(&w.Items[i]); err != nil {
				return nil, err
			}
		}
		t.failed = append(t.failed, w.Failed...)
	}
	split := *spec.Split
	if t.folds, err = tune.Divide(split, t.images); err != nil {
		return nil, cli.Usage(fmt.Errorf("tune: %w", err))
	}
	if err := t.start(split.Seed); err != nil {
		return nil, err
	}
	return t, nil
}

// filterRows returns the rows of a dataset that a condition accepts.
func filterRows(rows shard.Rows, keep func(manifest.Row) bool) shard.Rows {
	return func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for row, err := range rows(ctx, d, skipped) {
				if (err != nil || keep(row)) && !yield(row, err) {
					return
				}
			}
		}
	}
}

// add enters an item of the full sweep.
func (t *tuningPlan) add(it *item.Item) error {
	if it.Mask != nil || it.Kernel != nil {
		if fromTask, known := t.fromTask[it.Task]; known && fromTask != it.FromTask {
			return cli.Usage(fmt.Errorf("tune: task %s has a mask or kernel, and some rows have their own; leave these columns out with dataset.columns, "+
				"or remove mask and kernel of the task", it.Task))
		}
		t.fromTask[it.Task] = it.FromTask
	}
	key, settings, err := contestOf(it)
	if err != nil {
		return err
	}
	img := tune.ImageOf(it)
	if names := t.names[img.SHA256]; !slices.Contains(names, img.Name) {
		t.names[img.SHA256] = append(names, img.Name)
		t.images = append(t.images, img)
	}
	c := t.byKey[key]
	if c == nil {
		c = &contest{problem: key.problem, method: key.method, prior: key.prior, images: map[string]tune.Image{}, byKey: map[string]*tunedCell{}}
		c.files.Operator = pathOf(it.Operator)
		if it.FromTask {
			c.files.Mask, c.files.Kernel = pathOf(it.Mask), pathOf(it.Kernel)
		}
		t.byKey[key], t.contests = c, append(t.contests, c)
	}
	c.images[img.SHA256] = img
	known := c.byKey[settings]
	if known == nil {
		var solver method.Settings
		if err := json.Unmarshal(it.Solver, &solver); err != nil {
			return fmt.Errorf("read settings of item %s: %w", it.Name, err)
		}
		m, err := t.methods.Find(solver.Method)
		if err != nil {
			return fmt.Errorf("read settings of item %s: %w", it.Name, err)
		}
		known = &tunedCell{settings: settings, solver: it.Solver, params: maps.Clone(it.Params),
			steps: solver.Steps, perRun: m.Info().Evaluations(solver)}
		c.cells, c.byKey[settings] = append(c.cells, known), known
	}
	known.runs = max(known.runs, it.Run+1)
	return nil
}

func pathOf(s *item.Source) string {
	if s == nil {
		return ""
	}
	return s.Path
}

// start creates the races.
func (t *tuningPlan) start(seed uint64) error {
	choice := false
	for _, c := range t.contests {
		choice = choice || len(c.cells) > 1
		var entrants []tune.Entrant
		for _, cell := range c.cells {
			cell.spent = make([]int, len(t.folds))
			entrants = append(entrants, tune.Entrant{Key: cell.settings, Evaluations: cell.evaluations()})
		}
		for k, f := range t.folds {
			images := c.among(f.Tune)
			if len(images) < 2 || len(c.among(f.Test)) == 0 {
				return cli.Usage(fmt.Errorf("tune: %s has %d images to tune and %d to test in fold %d; want at least 2 and 1: add images, "+
					"or choose another split", c.describe(), len(images), len(c.among(f.Test)), k+1))
			}
			c.races = append(c.races, tune.NewRace(entrants, tune.Order(images, seed)))
		}
	}
	switch {
	case len(t.contests) == 0:
		return cli.Usage(errors.New("tune: no item of the campaign can be restored; see: ddiff run --dry-run"))
	case !choice:
		return cli.Usage(errors.New("tune: there is one setting for each problem and method, and so nothing to choose; " +
			"give lists, as in --set lambda=1,2,4"))
	}
	return nil
}

// among returns the images of a side that the contest has.
func (c *contest) among(side []tune.Image) []tune.Image {
	var out []tune.Image
	for _, img := range side {
		if _, ok := c.images[img.SHA256]; ok {
			out = append(out, img)
		}
	}
	return out
}
