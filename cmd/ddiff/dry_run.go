package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/storage"
)

// statCalls is the number of concurrent questions to the output of a dry run.
const statCalls = 16

// plannedGroup counts the items of one task and method.
type plannedGroup struct {
	Task   string `json:"task"`
	Method string `json:"method"`
	Items  int    `json:"items"`
	Done   int    `json:"done"`
	ToDo   int    `json:"to_do"`
	Failed int    `json:"failed"`
}

// plan is the outcome of a dry run.
type plan struct {
	groups  []*plannedGroup // in the order of the campaign
	byName  map[[2]string]*plannedGroup
	skipped int // files of the dataset that are no images
}

func (p *plan) group(it manifest.Item) *plannedGroup {
	name := [2]string{it.Task, it.Method}
	g := p.byName[name]
	if g == nil {
		g = &plannedGroup{Task: it.Task, Method: it.Method}
		p.groups, p.byName[name] = append(p.groups, g), g
	}
	return g
}

// dryRun reads the campaign and its dataset and prints the items to run and those already done. It writes nothing, and
// opens neither the device nor the queue. The exit code is that of a run: an item that cannot be restored gives
// errIncomplete.
func dryRun(ctx context.Context, spec *manifest.Spec, o runOptions, stdout, stderr io.Writer) error {
	p, err := openPriorOf(spec, o.catalogue)
	if err != nil {
		return err
	}
	sources, err := o.sources.open(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer sources.Close()
	// A missing directory has no results.
	stat := func(context.Context, string) (storage.Info, error) { return storage.Info{}, storage.ErrNotFound }
	opened, err := storage.Open(ctx, spec.Output, storage.Options{ReadOnly: true})
	switch {
	case err == nil:
		stat = opened.Store.Stat
		defer opened.Close() //nolint:errcheck // nothing was written
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open output %s: %w", spec.Output, err)
	}

	all := plan{byName: map[[2]string]*plannedGroup{}}
	sharder, err := shard.New(shard.Config{
		Spec: spec, Prior: &p.Description, Sources: sources, Rows: sources.Rows, Catalogue: o.catalogue, Skipped: func(string) { all.skipped++ },
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
			if !o.json {
				fmt.Fprintf(stderr, "%s %s (%s): %s\n", styleOf(stderr).red("failed:"), r.Item.Name, r.Item.Task, r.Reason)
			}
		}
	}
	return all.print(stdout, stderr, spec.Output, o)
}

// add counts the items of a window; stat finds the results of finished items.
func (p *plan) add(ctx context.Context, stat func(context.Context, string) (storage.Info, error), w *shard.Window) error {
	done := make([]bool, len(w.Items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(statCalls)
	for i, it := range w.Items {
		group.Go(func() error {
			_, err := stat(inner, manifest.ItemKey(it.ID, manifest.FileResult))
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
		g := p.group(it)
		g.Items++
		if done[i] {
			g.Done++
		} else {
			g.ToDo++
		}
	}
	for _, r := range w.Failed {
		g := p.group(r.Item)
		g.Items++
		g.Failed++
	}
	return nil
}

// print writes the counts by task and method, and those of the campaign.
func (p *plan) print(stdout, stderr io.Writer, output string, o runOptions) error {
	sum := plannedGroup{}
	for _, g := range p.groups {
		sum.Items, sum.Done, sum.ToDo, sum.Failed = sum.Items+g.Items, sum.Done+g.Done, sum.ToDo+g.ToDo, sum.Failed+g.Failed
	}
	var err error
	if o.json {
		err = json.NewEncoder(stdout).Encode(map[string]any{
			"groups": p.groups, "items": sum.Items, "done": sum.Done, "to_do": sum.ToDo, "failed": sum.Failed,
			"skipped": p.skipped, "out": output,
		})
	} else {
		if p.skipped > 0 && !o.quiet {
			fmt.Fprintf(stderr, "skipped %d non-image files of the dataset\n", p.skipped)
		}
		t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TASK\tMETHOD\tITEMS\tDONE\tTO DO\tFAILED")
		for _, g := range p.groups {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", g.Task, g.Method, g.Items, g.Done, g.ToDo, g.Failed)
		}
		fmt.Fprintf(t, "items=%d done=%d to_do=%d failed=%d out=%s\n", sum.Items, sum.Done, sum.ToDo, sum.Failed, output)
		err = t.Flush()
	}
	if err == nil && sum.Failed > 0 {
		err = fmt.Errorf("%w: %d would fail", errIncomplete, sum.Failed)
	}
	return err
}
