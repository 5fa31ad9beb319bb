package job

import (
	"fmt"

	"ddiff/internal/regular"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/passport"
	"ddiff/restore"
	"ddiff/restore/item"
)

// Encode warns of a doubtful result, and encodes the restored picture and the files beside it: all those of a campaign, or those that a passport names. It completes
// the result, of which the caller has set the runtime's version and what the passport has beside, such as the worker.
func (j *Job) Encode(e *restore.Engine, res *item.Result, all bool) (picture []byte, files []Artifact, err error) {
	j.warnResult(e)
	if files, err = j.arrays(); all && err == nil {
		files, err = j.artifacts(files)
	}
	if err != nil {
		return nil, nil, err
	}
	res.Schema, res.Item, res.Outcome, res.Runtime = item.SchemaVersion, j.Item.Public(), item.OutcomeDone, RuntimeOf(e, j.Plan, j.Batch, res.Runtime.Version)
	res.Seconds, res.Batch, res.Cost = j.Seconds, j.Batch, j.Cost
	res.Metrics, res.Warnings, res.Steps = j.Metrics, j.Warnings, j.Plan.Solver.Steps
	res.MetricIDs = map[string]string{}
	for _, d := range metric.Builtin() {
		res.MetricIDs[d.Name] = d.ID()
	}
	res.Artifacts = map[string]string{}
	for _, f := range files {
		res.Artifacts[f.Name] = regular.SHA256(f.Data)
	}
	if picture, err = passport.Encode(j.Restored(), j.Picture(), *res); err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", item.FileRestored, err)
	}
	res.Artifacts[item.FileRestored] = regular.SHA256(picture)
	return picture, files, nil
}

// RuntimeOf describes how an engine computes a plan for batches of n.
func RuntimeOf(e *restore.Engine, p restore.Plan, n int, version string) item.Runtime {
	rt, build := e.RuntimeFor(p), e.Build(p)
	return item.Runtime{
		Library: rt.Version(), Provider: rt.Provider(), Device: rt.Device(), Threads: rt.Threads(),
		Options: e.Settings(p, n), Precision: build.Precision, Version: version,
		Streams: build.Streams, Form: string(e.Form(p, n)),
	}
}
