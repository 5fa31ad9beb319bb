package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/hostmemory"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	restorer "ddiff/restore/picture"
)

// configure opens the prior and makes the configuration of the sessions. It opens the runtimes only where the precision auto asks the device.
func (w *pictureWriter) configure(log *slog.Logger) (runtimes []*onnxruntime.Runtime, err error) {
	if err := w.Stages.CheckMemory(); err != nil {
		return nil, err
	}
	p, err := cli.OpenPrior(w.spec.Prior)
	if err != nil {
		return nil, err
	}
	known := w.Catalogue
	known.Prior, known.New = &p.Description, true
	if err := w.spec.ValidateRestorations(known); err != nil {
		return nil, cli.Usage(err)
	}
	build, err := w.Check()
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
	w.cells = w.spec.Cells()
	w.session = w.sessionConfig(p, build, w.spec.Tile == "", log)
	w.session.Batch = w.spec.Batch
	w.session.Unchecked = w.unchecked || len(w.cells) != w.spec.Runs // the names of those that differ in more than the run have their settings
	return runtimes, nil
}

// sessionConfig is the configuration of sessions with a prior and the flags; divide: a picture that is too large for the memory is restored in tiles.
func (o *restoreOptions) sessionConfig(p *prior.Prior, build solver.Build, divide bool, log *slog.Logger) restorer.Config {
	cfg := restorer.Config{
		Prior: p, Build: build, Methods: o.Catalogue.Methods, Operators: o.Catalogue.Operators,
		Memory: job.SolveMemory(o.Stages.MemoryShare), Version: cli.Version(), Logger: log, Unchecked: o.unchecked,
	}
	if divide {
		side, multiple := p.Card.TileSide(), p.Card.MultipleOf
		cfg.Large = prior.Tiling{Side: side, Overlap: (side/largeOverlap + multiple - 1) / multiple * multiple}
	}
	if cfg.Whole = cfg.Memory; cfg.Whole == 0 { // no limit
		cfg.Whole = math.MaxInt64
	}
	if free := hostmemory.Free(); free > 0 {
		cfg.Whole = min(cfg.Whole, free)
	}
	return cfg
}

const (
	// largeOverlap is the part of a tile that neighbours share at least, where nobody chose tiles. A quarter, the default of --tile, has the same quality in 1.4 times
	// the time (docs/tiling.md).
	largeOverlap = 8
	// largePixels is a number of pixels from which a picture is denoised with fewer evaluations of the network.
	largePixels = 2 << 20
)

// chooseLarge replaces the mean prediction for four mirrored images, the preset's in denoise, by one prediction per step for large pictures.
func chooseLarge(t *item.Task, width, height int) {
	if _, set := t.Solver["mirror"]; set || t.Name != operator.Denoise || t.Method != "ddiff" || height*width < largePixels {
		return
	}
	t.Solver = t.Solver.Or(parameter.Values{"mirror": parameter.Word("alternate")})
	t.Choice += "; the picture is large: a quarter of the evaluations, which costs 0.1 to 0.2 dB"
}

// pictures returns the restorations of an input.
func (w *pictureWriter) pictures(in *picture) []restorer.Picture {
	var out []restorer.Picture
	d := w.spec.Dataset
	for _, t := range w.cells {
		t.Params, t.Tile, t.Overlap = in.scaled(in.with(t.Params)), w.tile, w.overlap
		if *t.Sigma == item.SigmaAuto && in.sigma != nil {
			t.Sigma, t.Estimated = new(item.Sigma(*in.sigma)), true
		}
		if choose := t.Choose; t.Choice != "" {
			t.Choose = func(t *item.Task, width, height int) {
				if choose != nil {
					choose(t, width, height)
				}
				chooseLarge(t, width, height)
			}
		}
		out = append(out, restorer.Picture{
			Name: in.name, Measurement: restorer.File{Path: in.path}, Original: restorer.File{Path: in.whole}, Mask: restorer.File{Path: d.Mask}, Kernel: restorer.File{Path: cmp.Or(in.kernel, d.Kernel)},
			Range: d.MeasurementRange, Form: d.DrawForm(), Task: t,
		})
	}
	return out
}

// restore restores the inputs in this process, with an equal share of them on each device, and writes each picture as soon as it is finished.
func (w *pictureWriter) restore(ctx context.Context, runtimes []*onnxruntime.Runtime, todo []*picture) (counts record.Counts, err error) {
	out := w.stdout
	if w.JSON {
		out = io.Discard // pictureWriter prints the objects
	}
	w.show = cli.NewProgress(w.JSON, w.Quiet, out, w.stderr)
	w.show.LeaveWarnings, w.show.Pace = true, w.Pace(w.session.Prior.SHA256, w.spec.Precision)
	var pictures []restorer.Picture
	for _, in := range todo {
		pictures = append(pictures, w.pictures(in)...)
	}
	counts.Items = len(pictures)
	steps := stepCount{of: make([]int, len(pictures))}
	w.show.Begin()
	defer w.show.Stop()
	w.show.Entered(counts.Items, 0, true)
	var mu sync.Mutex // of counts, and of the calls of w
	group, inner := errgroup.WithContext(ctx)
	for i, rt := range runtimes {
		begin := i * len(pictures) / len(runtimes)
		part := pictures[begin : (i+1)*len(pictures)/len(runtimes)]
		if len(part) == 0 {
			continue
		}
		cfg := w.session
		cfg.Runtime, cfg.Memory, cfg.Whole = rt, cfg.Memory/int64(len(runtimes)), cfg.Whole/int64(len(runtimes))
		made, before := map[int]float64{}, map[int]float64{} // steps by picture, and those of its restorations that were doubted
		estimated := estimate{pace: w.show.Pace, items: len(part), expect: w.show.Expect}
		cfg.Progress = func(p restorer.Progress) {
			places := make([]int, len(p.Pictures))
			for k, i := range p.Pictures {
				places[k] = begin + i
			}
			done := float64(p.Step) + p.Share
			for _, i := range p.Pictures {
				if done == 0 {
					before[i] = made[i]
				}
				w.show.Advanced(before[i] + done - made[i])
				made[i] = before[i] + done
			}
			w.show.Entered(counts.Items, steps.all(places, p.Steps, int(before[p.Pictures[0]])), true)
			if line := estimated.of(p); line != "" {
				name := part[p.Pictures[0]].Name
				if n := len(p.Pictures); n > 1 {
					name += fmt.Sprintf(" and %d more", n-1)
				}
				w.show.Say(name + ": " + line)
			}
		}
		group.Go(func() (err error) {
			session, err := restorer.Open(inner, cfg)
			if err != nil {
				return cli.PriorError(err)
			}
			defer func() { err = errors.Join(err, session.Close()) }()
			if doubt := session.Doubt(); doubt != "" && i == 0 {
				w.show.Say("warning: " + doubt)
			}
			for _, r := range session.Restore(inner, part...) {
				if onnxruntime.Unusable(r.Err) {
					return fmt.Errorf("solve: %w", r.Err)
				}
				mu.Lock()
				w.show.Finished(r.Result, false)
				full := w.settled(restored{r.Result, r.PNG, r.Image, r.Doubted})
				switch {
				case full != nil: // it is to be restored again
				case r.Outcome == item.OutcomeDone:
					counts.Done++
				default:
					counts.Failed++
				}
				mu.Unlock()
				if full != nil {
					return full
				}
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

// estimate foretells the time of pictures: before the first evaluation from the pace of earlier commands, later from their first steps or tiles.
type estimate struct {
	pace   *cli.Pace
	items  int                   // restorations of the command
	expect func(d time.Duration) // for all of them

	picture  int           // the first one of the present batch, from 1; 0: none yet
	first    bool          // it is the first batch
	whole    time.Duration // foretold for the batch; 0: not known
	began    time.Time     // when done was made; zero: nothing was
	done     float64       // steps
	measured bool
}

const (
	// observed is the time of steps or tiles from which that of a batch is estimated. A line is worth a command of shortest, or a batch of shortestBatch.
	observed      = 2 * time.Second
	shortest      = 5 * time.Second
	shortestBatch = 20 * time.Second
	// misjudged is the ratio of two estimates from which the second one is said too.
	misjudged = 1.5
)

// of returns the line on a batch before it, and again if that was wrong.
func (e *estimate) of(p restorer.Progress) string {
	done, now := float64(p.Step)+p.Share, time.Now()
	switch {
	case e.picture != p.Pictures[0]+1:
		*e = estimate{pace: e.pace, items: e.items, expect: e.expect, picture: p.Pictures[0] + 1, first: e.picture == 0}
		if e.whole = e.pace.Time(float64(len(p.Pictures)) * cli.Work(p.Item, p.Cost)); e.first && e.whole > 0 {
			e.expect(e.all(p))
		}
		return e.line(p)
	case done == 0: // restored again
		e.began = time.Time{}
	case e.began.IsZero():
		e.began, e.done = now, done // without the time of the first step or tile, which compiles
	case !e.measured && done < float64(p.Steps) && now.Sub(e.began) >= observed:
		before := e.whole
		e.measured, e.whole = true, time.Duration(float64(now.Sub(e.began))/(done-e.done)*float64(p.Steps))
		if float64(max(before, e.whole)) > misjudged*float64(min(before, e.whole)) {
			return e.line(p)
		}
	}
	return ""
}

// all is the time of all restorations, if they are alike.
func (e *estimate) all(p restorer.Progress) time.Duration {
	return e.whole * time.Duration(e.items) / time.Duration(len(p.Pictures))
}

func (e *estimate) line(p restorer.Progress) string {
	if e.whole < shortestBatch && (!e.first || e.all(p) < shortest) {
		return ""
	}
	text := fmt.Sprintf("%d evaluations of the network", p.Evaluations)
	if p.Tiles > 1 {
		text += fmt.Sprintf(" in %d tiles each", p.Tiles)
	}
	text += fmt.Sprintf(", about %v", cli.About(e.whole))
	if e.first && e.items > len(p.Pictures) {
		text += fmt.Sprintf("; all %d restorations about %v, if they are alike", e.items, cli.About(e.all(p)))
	}
	return text
}
