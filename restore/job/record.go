package job

import (
	"fmt"

	"ddiff/internal/regular"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/metric"
	"ddiff/restore/passport"
)

// Record completes the result of a scored item with metrics, warnings and the digests of its files, and returns the restored picture, whose passport
// has them. The caller sets batch, runtime and what else the passport records before.
func (j *Job) Record(res *item.Result, m item.Metrics, files []Artifact) ([]byte, error) {
	res.Metrics, res.Warnings, res.Steps = m, j.Warnings, j.Plan.Solver.Steps
	res.MetricIDs = map[string]string{}
	for _, d := range metric.Builtin() {
		res.MetricIDs[d.Name] = d.ID()
	}
	res.Artifacts = map[string]string{}
	for _, f := range files {
		res.Artifacts[f.Name] = regular.SHA256(f.Data)
	}
	picture, err := passport.Encode(j.Restored(), j.Picture(), *res)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", item.FileRestored, err)
	}
	res.Artifacts[item.FileRestored] = regular.SHA256(picture)
	return picture, nil
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
