package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/cli/embedded"
	"ddiff/manifest"
	"ddiff/restore/job"
	"ddiff/restore/onnx/onnxruntime"
	restorer "ddiff/restore/picture"
)

// configure opens the prior and makes the configuration of the sessions. It opens the runtimes only where the precision auto asks the device.
func (w *pictureWriter) configure(log *slog.Logger) (runtimes []*onnxruntime.Runtime, err error) {
	if _, err := w.Stages.Limits(); err != nil {
		return nil, err
	}
	p, err := cli.OpenPriorOf(w.spec, w.Catalogue)
	if err != nil {
		return nil, err
	}
	if err := w.Check(); err != nil {
		return nil, err
	}
	build, err := w.Build()
	if err != nil {
		return nil, err
	}
	if w.tile, w.overlap, err = w.spec.Tiles(p.Card.TileSide(), p.Card.MultipleOf); err != nil {
		return nil, cli.Usage(err)
	}
	if w.spec.Precision != "" {
		if runtimes, err = w.OpenAll(log); err != nil {
			return nil, err
		}
		why, err := campaign.FixPrecision(w.spec, runtimes[0], w.Catalogue)
		if err != nil {
			return nil, errors.Join(err, cli.CloseRuntimes(runtimes))
		}
		w.NotePrecision(w.stderr, w.spec, why)
	}
	w.session = restorer.Config{
		Prior: p, Build: build, Methods: w.Catalogue.Methods, Operators: w.Catalogue.Operators,
		Memory: job.SolveMemory(w.Stages.MemoryShare), Batch: w.spec.Batch, Version: cli.Version(), Logger: log,
		Unchecked: w.unchecked || !w.single(), // the names of several restorations have their sigma
	}
	return runtimes, nil
}

// pictures returns the restorations of an input.
func (w *pictureWriter) pictures(in *picture) []restorer.Picture {
	var out []restorer.Picture
	d := w.spec.Dataset
	for _, c := range w.spec.Cells() {
		t := c.Task
		s := restorer.Settings{
			Task: t.Name, Params: t.Params, Sigma: float64(*t.Sigma), Method: c.Method, Preset: w.spec.Preset, Steps: t.Steps, Solver: t.Solver, Choice: t.Choice,
			Seed: w.spec.Seed, Run: c.Run, Tile: w.tile, Overlap: w.overlap, Precision: w.spec.PrecisionOf(t.Name), KeepObserved: w.spec.KeepObserved,
		}
		if *t.Sigma == manifest.SigmaAuto {
			s.Sigma, s.Estimate = 0, true
		}
		if t.Photons != nil {
			s.Photons = *t.Photons
		}
		if t.Choose != nil {
			s.Choose = func(s *restorer.Settings) {
				known := t
				known.Params, known.Sigma = s.Params, new(manifest.Sigma(s.Sigma))
				t.Choose(&known)
				s.Steps, s.Solver, s.Choice = known.Steps, known.Solver, known.Choice
			}
		}
		out = append(out, restorer.Picture{
			Name: in.name, Measurement: restorer.File{Path: in.path}, Mask: restorer.File{Path: d.Mask}, Kernel: restorer.File{Path: d.Kernel},
			Range: d.MeasurementRange, Settings: s,
		})
	}
	return out
}

// restore restores the inputs in this process, with an equal share of them on each device, and writes each picture as soon as it is finished.
func (w *pictureWriter) restore(ctx context.Context, runtimes []*onnxruntime.Runtime, todo []*picture) (counts manifest.Counts, err error) {
	out := w.stdout
	if w.JSON {
		out = io.Discard // pictureWriter prints the objects
	}
	w.show = embedded.NewProgress(w.Options, out, w.stderr)
	w.show.LeaveWarnings = true
	var pictures []restorer.Picture
	for _, in := range todo {
		pictures = append(pictures, w.pictures(in)...)
	}
	counts.Items = len(pictures)
	w.show.Begin()
	defer w.show.Stop()
	w.show.Entered(counts.Items, 0, true)
	var mu sync.Mutex // of counts, and of the calls of w
	group, inner := errgroup.WithContext(ctx)
	for i, rt := range runtimes {
		part := pictures[i*len(pictures)/len(runtimes) : (i+1)*len(pictures)/len(runtimes)]
		if len(part) == 0 {
			continue
		}
		cfg := w.session
		cfg.Runtime, cfg.Memory = rt, cfg.Memory/int64(len(runtimes))
		made := map[int]int{} // steps by picture
		cfg.Progress = func(p restorer.Progress) {
			w.show.Entered(counts.Items, counts.Items*p.Steps, true)
			for _, i := range p.Pictures {
				w.show.Stepped(max(0, p.Step-made[i])) // a doubted picture is restored again
				made[i] = max(made[i], p.Step)
			}
		}
		group.Go(func() (err error) {
			session, err := restorer.Open(inner, cfg)
			if err != nil {
				return cli.PriorError(err)
			}
			defer func() { err = errors.Join(err, session.Close()) }()
			for _, r := range session.Restore(inner, part...) {
				if errors.Is(r.Err, onnxruntime.ErrDeviceLost) || errors.Is(r.Err, onnxruntime.ErrFallback) {
					return fmt.Errorf("solve: %w", r.Err)
				}
				mu.Lock()
				if r.Outcome == manifest.OutcomeDone {
					counts.Done++
				} else {
					counts.Failed++
				}
				w.show.Finished(r.Result, false)
				w.settled(restored{r.Result, r.PNG, r.Image})
				mu.Unlock()
			}
			return nil
		})
	}
	err = group.Wait()
	counts.Pending = counts.Items - counts.Done - counts.Failed
	if err == nil {
		err = context.Cause(ctx)
	}
	return counts, err
}
