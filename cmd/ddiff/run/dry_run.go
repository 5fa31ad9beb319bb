package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/redact"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// statCalls is the number of concurrent questions to the output of a dry run.
const statCalls = 16

// plannedGroup counts the items of one cell of the campaign.
type plannedGroup struct {
	Task   string `json:"task"`
	Method string `json:"method"`
	// Cell describes how the cell differs from the others of its task and method.
	Cell   string `json:"cell,omitempty"`
	Items  int    `json:"items"`
	Done   int    `json:"done"`
	ToDo   int    `json:"to_do"`
	Failed int    `json:"failed"`

	cell sweep.Cell
	cost item.Cost // of an item; zero: not known
}

// plan is the outcome of a dry run.
type plan struct {
	groups []*plannedGroup // in the order of the campaign
	byCell map[sweep.Cell]*plannedGroup
	skips  manifest.Skips // entries of the dataset that are no rows
	work   float64        // of the items to do, see cli.Work
	cost   func(it *item.Item) (item.Cost, error)
}

func (p *plan) group(it item.Item) (*plannedGroup, error) {
	cell, err := sweep.CellOf(&it)
	if err != nil {
		return nil, err
	}
	g := p.byCell[cell]
	if g == nil {
		g = &plannedGroup{Task: it.Task, Method: it.Method, cell: cell}
		p.groups, p.byCell[cell] = append(p.groups, g), g
	}
	return g, nil
}

// describe sets the texts of the cells.
func (p *plan) describe() {
	cells := make([]sweep.Cell, len(p.groups))
	for i, g := range p.groups {
		cells[i] = g.cell
	}
	for i, text := range aggregate.Variants(cells) {
		p.groups[i].Cell = text
	}
}

// dryRun reads the campaign and its dataset and prints the items to run and those already done. It writes nothing, and
// opens the device only for the precision auto, and no queue. The exit code is that of a run: an item that cannot be restored gives
// cli.ErrIncomplete.
func dryRun(ctx context.Context, spec *manifest.Spec, o campaign.Options, skipped manifest.Skips, stdout, stderr io.Writer) error {
	if _, err := onnxruntime.ParseDevices(o.Device); err != nil {
		return cli.Usage(fmt.Errorf("--device: %w", err))
	}
	return o.WithPlan(spec, stderr, func(p *prior.Prior, sources cli.Datasets) error {
		// A missing directory has no results.
		stat := func(context.Context, string) (storage.Info, error) { return storage.Info{}, storage.ErrNotFound }
		opened, err := storage.Open(ctx, spec.Output, storage.Options{ReadOnly: true})
		switch {
		case err == nil:
			stat = opened.Store.Stat
			defer opened.Close() //nolint:errcheck // nothing was written
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("open output %s: %w", redact.Address(spec.Output), err)
		}
		all := plan{byCell: map[sweep.Cell]*plannedGroup{}, cost: func(it *item.Item) (item.Cost, error) { return costOf(it, p, o.Catalogue) }}
		if o.JSON { // otherwise they were reported
			all.skips.Merge(skipped)
		}
		sharder, err := shard.New(shard.Config{
			Spec: spec, Prior: &p.Description, Sources: sources, Rows: sources.Rows, Catalogue: o.Catalogue, Skipped: all.skips.Add,
		})
		if err != nil {
			return err
		}
		for w, err := range sharder.Windows(ctx, shard.Position{}) {
			if err != nil {
				return err
			}
			if err := all.add(ctx, stat, w); err != nil {
				return err
			}
			for _, r := range w.Failed {
				if !o.JSON {
					fmt.Fprintln(stderr, cli.StyleOf(stderr).Red("failed:"), cli.ItemLine(r))
				}
			}
		}
		return all.print(stdout, stderr, spec.Output, o, o.Pace(p.SHA256, spec.Precision).Time(all.work))
	})
}

// add counts the items of a window; stat finds the results of finished items.
func (p *plan) add(ctx context.Context, stat func(context.Context, string) (storage.Info, error), w *shard.Window) error {
	done := make([]bool, len(w.Items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(statCalls)
	for i, it := range w.Items {
		group.Go(func() error {
			_, err := stat(inner, item.Key(it.ID, item.FileResult))
			if done[i] = err == nil; done[i] || errors.Is(err, storage.ErrNotFound) {
				return nil
			}
			return fmt.Errorf("look for the result of item %s: %w", it.Name, err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, it := range w.Items {
		g, err := p.group(it)
		if err != nil {
			return err
		}
		g.Items++
		if done[i] {
			g.Done++
		} else {
			g.ToDo++
			if g.cost == (item.Cost{}) {
				if g.cost, err = p.cost(&it); err != nil {
					return fmt.Errorf("count the evaluations of item %s: %w", it.Name, err)
				}
			}
			p.work += cli.Work(&it, g.cost)
		}
	}
	for _, r := range w.Failed {
		g, err := p.group(r.Item)
		if err != nil {
			return err
		}
		g.Items++
		g.Failed++
	}
	return nil
}

// costOf returns the cost of an item, which is that of its cell.
func costOf(it *item.Item, p *prior.Prior, c manifest.Catalogue) (item.Cost, error) {
	var s method.Settings
	if err := json.Unmarshal(it.Solver, &s); err != nil {
		return item.Cost{}, err
	}
	m, err := c.Methods.Find(it.Method)
	if err != nil {
		return item.Cost{}, err
	}
	d, err := c.Operators.Definition(it.Task, it.OwnKernel)
	if err != nil {
		return item.Cost{}, err
	}
	op, err := operator.Set{d}.New(it.Task, it.Params, operator.Shape{Channels: p.Card.Channels, Height: it.Height, Width: it.Width})
	if err != nil {
		return item.Cost{}, err
	}
	run, err := method.NewRun(m, s, p, op)
	if err != nil {
		return item.Cost{}, err
	}
	cost, err := run.Cost()
	return item.Cost(cost), err
}

// print writes the counts by cell, and those of the campaign, and how long it takes if that is known.
func (p *plan) print(stdout, stderr io.Writer, output string, o campaign.Options, takes time.Duration) error {
	p.describe()
	sum := plannedGroup{}
	for _, g := range p.groups {
		sum.Items, sum.Done, sum.ToDo, sum.Failed = sum.Items+g.Items, sum.Done+g.Done, sum.ToDo+g.ToDo, sum.Failed+g.Failed
	}
	var err error
	if o.JSON {
		err = json.NewEncoder(stdout).Encode(map[string]any{
			"groups": p.groups, "items": sum.Items, "done": sum.Done, "to_do": sum.ToDo, "failed": sum.Failed,
			"left_out": p.skips, "out": output, "estimated_seconds": math.Round(takes.Seconds()),
		})
	} else {
		fmt.Fprint(stderr, p.skips.Report(o.Quiet))
		switch {
		case sum.ToDo == 0 || o.Quiet:
		case takes == 0:
			fmt.Fprintln(stderr, "no estimate of the time: this prior has not run on this device yet")
		default:
			fmt.Fprintf(stderr, "about %v on this device, at the pace of its last run\n", cli.About(takes))
		}
		t := table.NewWriter(stdout)
		fmt.Fprintln(t, "TASK\tMETHOD\tCELL\tITEMS\tDONE\tTO DO\tFAILED")
		for _, g := range p.groups {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", g.Task, g.Method, cmp.Or(g.Cell, "-"), g.Items, g.Done, g.ToDo, g.Failed)
		}
		fmt.Fprintf(t, "items=%d done=%d to_do=%d failed=%d out=%s\n", sum.Items, sum.Done, sum.ToDo, sum.Failed, output)
		err = t.Flush()
	}
	if err == nil && sum.Failed > 0 {
		err = fmt.Errorf("%w: %d would fail", cli.ErrIncomplete, sum.Failed)
	}
	return err
}
