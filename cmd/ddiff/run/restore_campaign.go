package run

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strconv"

	"ddiff/internal/cli"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/restore/item"
	restorer "ddiff/restore/picture"
	"ddiff/storage"
)

// runCampaign restores pictures as a campaign of measurements, whose results are kept in --results.
func (w *pictureWriter) runCampaign(ctx context.Context, todo []*picture) error {
	_, existed := os.Stat(w.spec.Output)
	shown, stdout := w.Options, w.stdout
	if w.JSON {
		stdout = io.Discard // pictureWriter prints the objects
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var ran error
	err := embedded.WithCampaign(ctx, w.spec, shown, stdout, w.stderr, func(e embedded.Campaign) error {
		e.Rows, e.LeftOut, w.show = pictureRows(todo), w.total.skips, e.Show
		e.Settled = func(res item.Result) {
			out := restored{Result: res}
			if res.Outcome == item.OutcomeDone {
				var err error
				if out.picture, err = e.Store.Get(ctx, item.Key(res.Item.ID, item.FileRestored)); err != nil {
					w.fail(res.Item.Name, err)
					return
				}
			}
			if full := w.settled(out); full != nil {
				stop(full)
			}
		}
		e.Show.LeaveWarnings = true
		run, worker, err := e.Parts(e.Show.Entered)
		if err != nil {
			return err
		}
		e.Show.Begin()
		ran = e.Process(working, run, worker)
		ran = cmp.Or(w.full, ran)
		e.Show.Stop()
		w.counts = run.Counts()
		if ran != nil && w.counts.Items == 0 {
			return ran
		}
		_, closed := run.Close(context.WithoutCancel(ctx))
		return closed
	})
	if w.counts.Items == 0 && err != nil {
		if errors.Is(existed, fs.ErrNotExist) && !errors.Is(err, storage.ErrLocked) {
			discardOutput(w.spec.Output)
		}
		return err
	}
	return errors.Join(err, ran)
}

// tileCampaign gives the campaign of kept results the tiles of a restoration without them, if one of its pictures needs tiles.
func (w *pictureWriter) tileCampaign(ctx context.Context, runtimes []*onnxruntime.Runtime, log *slog.Logger, todo []*picture) (err error) {
	large := w.session.Large
	todo = slices.DeleteFunc(slices.Clone(todo), func(in *picture) bool {
		it, err := w.session.Item(w.pictures(in)[0])
		return err != nil || !large.Divides(it.Height, it.Width) // the campaign says what is wrong
	})
	if large.Side == 0 || len(todo) == 0 {
		return nil
	}
	if runtimes == nil {
		if runtimes, err = w.OpenAll(log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cli.CloseRuntimes(runtimes)) }()
	}
	cfg := w.session
	cfg.Runtime = runtimes[0]
	session, err := restorer.Open(ctx, cfg)
	if err != nil {
		return cli.PriorError(err)
	}
	defer func() { err = errors.Join(session.Close(), err) }()
	for _, in := range todo {
		if side, overlap, err := session.Tiles(w.pictures(in)[0]); err == nil && side > 0 {
			w.spec.Tile, w.spec.Overlap = strconv.Itoa(side), &overlap
			return nil
		}
	}
	return nil
}

// pictureRows is a dataset of measurements.
func pictureRows(inputs []*picture) shard.Rows {
	return func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i, in := range inputs {
				row := manifest.Row{Index: i, Name: in.name, Measurement: in.path, Overrides: manifest.Overrides{Params: in.params, Kernel: in.kernel}}
				if err := manifest.CheckFile(in.path); err != nil {
					row.Err = &manifest.FieldError{File: in.name, Err: err}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// discardOutput removes the folder of results that a refused restoration has created. It leaves a folder with other files than the lock.
func discardOutput(dir string) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 && storage.HasLock(dir) {
		os.RemoveAll(dir) //nolint:errcheck // an empty folder, which ddiff gc also removes
	}
}
