package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"ddiff/gpuworker/passport"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/metric"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/storage"
	"ddiff/telemetry"
)

// finish scores an item and stores its artifacts and result.
func (e engineRestorer) finish(t *task) (*manifest.Result, error) {
	e.recordStage(t.ctx, t, telemetry.StageScore)
	var scores manifest.Metrics
	err := e.stage(t, telemetry.StageScore, e.cfg.Limits.Finish, func(context.Context) (err error) {
		if scores, err = t.score(); err == nil {
			t.warn(scores)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var res *manifest.Result
	err = e.stage(t, telemetry.StageWrite, e.cfg.Limits.Finish, func(ctx context.Context) (err error) {
		res, err = e.write(ctx, t, scores)
		return err
	})
	if err == nil && t.checkpoint != nil {
		e.deleteCheckpoint(t.ctx, t)
	}
	return res, err
}

// score computes the item's metrics.
func (t *task) score() (manifest.Metrics, error) {
	var m manifest.Metrics
	observed := func(v []float32) []float32 { return t.op.Observed(v, t.problem.Draw) }
	seen := observed(t.problem.Y)
	variance := t.noise().Variance(seen)
	residual, err := metric.Residual(seen, observed(t.applied), variance)
	if err != nil {
		return m, fmt.Errorf("score residual: %w", err)
	}
	m.Residual = &residual
	if t.item.Photons > 0 {
		m.NoiseVariance = &variance
	}
	if t.truth == nil {
		return m, nil
	}
	if m.PSNR, m.SSIM, err = compare(t.truth, t.restored()); err != nil {
		return m, err
	}
	if m.PSNRLuma, m.HaarPSI, err = perceptual(t.truth, t.restored()); err != nil {
		return m, err
	}
	if base := t.op.Baseline(t.problem.Y); base != nil {
		if m.BaselinePSNR, m.BaselineSSIM, err = compare(t.truth, base); err != nil {
			return m, err
		}
	}
	return m, nil
}

// compare returns PSNR and SSIM of an image. SSIM is nil when the image is smaller than the window of the metric.
func compare(truth, other *raster.Image) (psnr, ssim *float64, err error) {
	p, err := metric.PSNR(truth, other)
	if err != nil {
		return nil, nil, fmt.Errorf("score PSNR: %w", err)
	}
	s, err := metric.SSIM(truth, other)
	if errors.Is(err, metric.ErrTooSmall) {
		return &p, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("score SSIM: %w", err)
	}
	return &p, &s, nil
}

// perceptual returns the PSNR of the luma and HaarPSI. Each is nil for an image to which the metric does not apply.
func perceptual(truth, other *raster.Image) (luma, haarPSI *float64, err error) {
	for _, m := range []struct {
		name  string
		score func(x, y *raster.Image) (float64, error)
		into  **float64
	}{{"PSNR of the luma", metric.PSNRLuma, &luma}, {"HaarPSI", metric.HaarPSI, &haarPSI}} {
		v, err := m.score(truth, other)
		switch {
		case err == nil:
			*m.into = &v
		case !errors.Is(err, metric.ErrTooSmall) && !errors.Is(err, metric.ErrShape):
			return nil, nil, fmt.Errorf("score %s: %w", m.name, err)
		}
	}
	return luma, haarPSI, nil
}

// write stores the artifacts, and then the result, create-only. Two workers that finish the same item write the same
// keys. The first result is kept, and write returns it.
func (e engineRestorer) write(ctx context.Context, t *task, m manifest.Metrics) (*manifest.Result, error) {
	// Artifacts of an existing result must not be replaced: its digests describe the bytes of the other worker.
	if res, err := t.findResult(ctx); err != nil || res != nil {
		return res, err
	}
	res := e.result(t, manifest.OutcomeDone, "")
	res.Metrics, res.Warnings = m, t.warnings
	res.MetricIDs = map[string]string{"psnr": metric.PSNRID, "ssim": metric.SSIMID, "residual": metric.ResidualID, "psnr_y": metric.LumaID, "haarpsi": metric.HaarPSIID}
	res.Seconds, res.Steps, res.Batch, res.Cost = t.seconds, t.plan.Solver.Steps, t.batch, manifest.Cost(t.cost)
	if e.cfg.Log != nil {
		res.Log = e.cfg.Log.Own(t.item.ID)
	}
	files, err := t.artifacts()
	if err != nil {
		return nil, err
	}
	res.Artifacts = map[string]string{}
	for _, f := range files {
		res.Artifacts[f.name] = regular.SHA256(f.data)
	}
	// The passport in the picture contains the digests of the other artifacts.
	picture, err := passport.Encode(t.restored(), t.picture(), *res)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", manifest.FileRestored, err)
	}
	res.Artifacts[manifest.FileRestored] = regular.SHA256(picture)
	for _, f := range append(files, artifact{manifest.FileRestored, picture}) {
		if err := t.put(ctx, f); err != nil {
			return nil, err
		}
	}
	err = t.createResult(ctx, res)
	if errors.Is(err, storage.ErrExists) {
		return t.restoreExistingResult(ctx)
	}
	return res, err
}

func (t *task) put(ctx context.Context, f artifact) error {
	t.written = max(t.written, len(f.data))
	if err := t.assigned.Store.Put(ctx, manifest.ItemKey(t.item.ID, f.name), f.data); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

// createResult writes result.json unless it exists (storage.ErrExists).
func (t *task) createResult(ctx context.Context, res *manifest.Result) error {
	data, err := manifest.EncodeResult(res)
	if err == nil {
		err = t.assigned.Store.Create(ctx, manifest.ItemKey(t.item.ID, manifest.FileResult), data)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// restoreExistingResult returns the result that another worker created while this worker wrote its artifacts. This
// worker may have replaced the other's restored.png. If the pixels are equal, only the passports differ, and
// restoreExistingResult writes the other's file again.
func (t *task) restoreExistingResult(ctx context.Context) (*manifest.Result, error) {
	res, err := t.readExisting(ctx)
	if err != nil {
		return nil, err
	}
	picture, err := passport.Encode(t.restored(), t.picture(), *res)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", manifest.FileRestored, err)
	}
	if regular.SHA256(picture) != res.Artifacts[manifest.FileRestored] {
		return res, nil
	}
	return res, t.put(ctx, artifact{manifest.FileRestored, picture})
}

// readResult reads the stored result of an item.
func (t *task) readResult(ctx context.Context) (*manifest.Result, error) {
	key := manifest.ItemKey(t.item.ID, manifest.FileResult)
	data, err := t.assigned.Store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read existing result: %w", err)
	}
	var res manifest.Result
	if err := json.Unmarshal(data, &res); err != nil {
		return nil, fmt.Errorf("read existing result %s: %w; delete it and run again", key, err)
	}
	return &res, nil
}

// readExisting is readResult after the store has refused another result. A store that does not return the existing one is
// a failure of the environment.
func (t *task) readExisting(ctx context.Context) (*manifest.Result, error) {
	res, err := t.readResult(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: the store has a result and does not return it: %w", storage.ErrUnavailable, err)
	}
	return res, err
}

// findResult is readResult, but returns nil when there is no result.
func (t *task) findResult(ctx context.Context) (*manifest.Result, error) {
	res, err := t.readResult(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return res, err
}

// result returns a result with the fields that all outcomes have.
func (c *core) result(t *task, o manifest.Outcome, reason string) *manifest.Result {
	runtime := manifest.Runtime{Version: c.cfg.Version}
	if t.assigned.Engine != nil {
		runtime = RuntimeOf(t.assigned.Engine, t.plan, c.cfg.Version)
	}
	return &manifest.Result{
		Schema: manifest.SchemaVersion, Item: t.item.Public(), Outcome: o, Reason: reason, Runtime: runtime,
		Worker: c.cfg.Name, Attempt: t.lease.Attempt(),
		TraceID:  trace.SpanContextFromContext(t.ctx).TraceID().String(),
		Finished: c.cfg.Now().UTC(),
	}
}

// RuntimeOf describes how an engine computes a plan. The length of its run limits the steps per call, unless it is 0.
func RuntimeOf(e *restore.Engine, p restore.Plan, version string) manifest.Runtime {
	rt, build := e.RuntimeFor(p), e.Build(p)
	k := build.Chunk
	if steps := p.Solver.Steps; steps > 0 {
		k = min(k, steps)
	}
	return manifest.Runtime{
		Library: rt.Version(), Provider: rt.Provider(), Device: rt.Device(), Threads: rt.Threads(),
		Options: e.Settings(p), Precision: string(build.Precision), Form: string(build.Form), K: k, Version: version,
		Streams: build.Streams,
	}
}

// artifact is a file beside a result.
type artifact struct {
	name string
	data []byte
}

// artifacts encodes the files beside a result, except for the restored image.
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
		png(manifest.FileMeasurement, t.shown()))
	if t.draw != nil {
		errs = append(errs, npy(t.draw.Name+".npy", t.draw.Dims, t.draw.Data))
	}
	if t.item.Unclipped {
		img := t.restored()
		errs = append(errs, npy(manifest.FileUnclipped, []int{img.Channels, img.Height, img.Width}, img.Pix))
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
