package gpuworker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"ddiff/manifest"
	"ddiff/restore/metric"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/storage"
	"ddiff/telemetry"
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// score computes the metrics of the item.
func (t *task) score() (manifest.Metrics, error) {
	var m manifest.Metrics
	residual, err := metric.Residual(t.problem.Y, t.applied, t.item.Sigma)
	if err != nil {
		return m, fmt.Errorf("score residual: %w", err)
	}
	m.Residual = &residual
	if t.truth == nil {
		return m, nil
	}
	if m.PSNR, m.SSIM, err = compare(t.truth, t.restored()); err != nil {
		return m, err
	}
	if base := t.op.Baseline(t.problem.Y); base != nil {
		if m.BaselinePSNR, m.BaselineSSIM, err = compare(t.truth, base); err != nil {
			return m, err
		}
	}
	return m, nil
}

func compare(truth, other *raster.Image) (psnr, ssim *float64, err error) {
	p, err := metric.PSNR(truth, other)
	if err != nil {
		return nil, nil, fmt.Errorf("score PSNR: %w", err)
	}
	// An image smaller than the metric's window has no SSIM.
	s, err := metric.SSIM(truth, other)
	if errors.Is(err, metric.ErrTooSmall) {
		return &p, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("score SSIM: %w", err)
	}
	return &p, &s, nil
}

// restored returns the restored image.
func (t *task) restored() *raster.Image {
	s := t.op.Image
	return &raster.Image{Channels: s.Channels, Height: s.Height, Width: s.Width, Pix: t.solution.X}
}

// write stores the artifacts and then creates the result. If two workers finish the same item, the first result wins and
// both return it.
func (w *Worker) write(ctx context.Context, t *task, m manifest.Metrics) (manifest.Result, error) {
	// Do not replace the artifacts of an existing result: its digests would no longer match.
	key := manifest.ItemKey(t.item.ID, manifest.FileResult)
	if res, err := t.existing(ctx); !errors.Is(err, storage.ErrNotFound) {
		return res, err
	}
	res := w.result(t, manifest.OutcomeDone, "")
	res.Metrics = m
	res.MetricIDs = map[string]string{"psnr": metric.PSNRID, "ssim": metric.SSIMID, "residual": metric.ResidualID}
	res.Seconds, res.Steps, res.Batch = t.seconds, t.plan.Solver.Steps, t.batch
	files, err := t.artifacts()
	if err != nil {
		return res, err
	}
	res.Artifacts = map[string]string{}
	put := func(name string, data []byte) error {
		if err := t.on.Store.Put(ctx, manifest.ItemKey(t.item.ID, name), data); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		res.Artifacts[name] = digest(data)
		return nil
	}
	for _, f := range files {
		if err := put(f.name, f.data); err != nil {
			return res, err
		}
	}
	// The passport in the picture names the digests of the others.
	picture, err := encodeRestored(t.restored(), res)
	if err != nil {
		return res, fmt.Errorf("encode %s: %w", manifest.FileRestored, err)
	}
	if err := put(manifest.FileRestored, picture); err != nil {
		return res, err
	}
	data, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return res, fmt.Errorf("write result: %w", err)
	}
	err = t.on.Store.Create(ctx, key, append(data, '\n'))
	if errors.Is(err, storage.ErrExists) {
		return w.adopt(ctx, t)
	}
	if err != nil {
		return res, fmt.Errorf("write result: %w", err)
	}
	return res, nil
}

// adopt returns the result that another worker created while this one wrote its artifacts. This worker's restored.png may
// have replaced the other one. With equal pixels only the passports differ, and adopt writes the file of the winner again.
func (w *Worker) adopt(ctx context.Context, t *task) (manifest.Result, error) {
	res, err := t.existing(ctx)
	if err != nil {
		return res, err
	}
	picture, err := encodeRestored(t.restored(), res)
	if err != nil {
		return res, fmt.Errorf("encode %s: %w", manifest.FileRestored, err)
	}
	if digest(picture) != res.Artifacts[manifest.FileRestored] {
		return res, nil
	}
	if err := t.on.Store.Put(ctx, manifest.ItemKey(t.item.ID, manifest.FileRestored), picture); err != nil {
		return res, fmt.Errorf("write %s: %w", manifest.FileRestored, err)
	}
	return res, nil
}

// existing reads the result of another worker or an earlier attempt. It returns storage.ErrNotFound without one.
func (t *task) existing(ctx context.Context) (manifest.Result, error) {
	var res manifest.Result
	key := manifest.ItemKey(t.item.ID, manifest.FileResult)
	data, err := t.on.Store.Get(ctx, key)
	if err != nil {
		return res, fmt.Errorf("read existing result: %w", err)
	}
	if err := json.Unmarshal(data, &res); err != nil {
		return res, fmt.Errorf("read existing result %s: %w; remove it and run again", key, err)
	}
	return res, nil
}

// result returns a result with the fields of every outcome.
func (w *Worker) result(t *task, o manifest.Outcome, reason string) manifest.Result {
	return manifest.Result{
		Schema: manifest.SchemaVersion, Item: t.item, Outcome: o, Reason: reason,
		Runtime: w.runtime(t),
		Worker:  w.cfg.Name, Attempt: t.lease.Attempt(),
		TraceID:  trace.SpanContextFromContext(t.ctx).TraceID().String(),
		Finished: w.cfg.Now().UTC(),
	}
}

// runtime describes the runtime that computes the item.
func (w *Worker) runtime(t *task) manifest.Runtime {
	if t.on.Engine == nil {
		return manifest.Runtime{Version: w.cfg.Version}
	}
	return RuntimeOf(t.on.Engine, t.plan.Solver.Steps, w.cfg.Version)
}

// artifact is one file beside a result.
type artifact struct {
	name string
	data []byte
}

// artifacts encodes the files beside a result, except the restored image.
func (t *task) artifacts() ([]artifact, error) {
	var out []artifact
	add := func(name string, data []byte, err error) error {
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		out = append(out, artifact{name, data})
		return nil
	}
	png := func(name string, img *raster.Image) error {
		data, err := raster.EncodePNG(img)
		return add(name, data, err)
	}
	npy := func(name string, dims []int, values []float32) error {
		data, err := raster.EncodeNPY(dims, values)
		return add(name, data, err)
	}
	var errs []error
	if t.truth != nil {
		errs = append(errs, png(manifest.FileTruth, t.truth))
	}
	errs = append(errs,
		npy(manifest.FileData, t.op.Measurement, t.problem.Y),
		png(manifest.FileMeasurement, t.op.Picture(t.problem.Y)))
	if t.draw != nil {
		errs = append(errs, npy(t.draw.Name+".npy", t.draw.Dims, t.draw.Data))
	}
	curves, err := json.Marshal(traceOf(t.solution.Curves))
	errs = append(errs, add(manifest.FileTrace, curves, err))
	return out, errors.Join(errs...)
}

func traceOf(c solver.Curves) manifest.Trace {
	t := manifest.Trace{Timestep: c.Time}
	for _, curve := range c.Curves {
		t.Curves = append(t.Curves, manifest.Curve(curve))
	}
	return t
}

// finish scores, writes and settles one restored item.
func (w *Worker) finish(ctx context.Context, t *task) error {
	var res manifest.Result
	if w.cfg.Simulate != nil {
		err := w.stage(t, telemetry.StageWrite, func(ctx context.Context) error {
			var err error
			res, err = w.writeSimulated(ctx, t)
			return err
		})
		return w.settle(ctx, t, outcomeOf(t.ctx, t, err), res)
	}
	err := w.stage(t, telemetry.StageScore, func(context.Context) error {
		var err error
		res.Metrics, err = t.score()
		return err
	})
	if err == nil {
		err = w.stage(t, telemetry.StageWrite, func(ctx context.Context) error {
			var err error
			res, err = w.write(ctx, t, res.Metrics)
			return err
		})
	}
	if err == nil && t.resumed != nil {
		w.deleteCheckpoint(t.ctx, t)
	}
	return w.settle(ctx, t, outcomeOf(t.ctx, t, err), res)
}
