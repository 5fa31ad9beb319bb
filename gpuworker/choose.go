package gpuworker

import (
	"cmp"

	"ddiff/gpuworker/tuner"
	"ddiff/restore"
)

// raceWorkload is the key of a race: it has no provider, and the settings of all candidates.
func raceWorkload(e *restore.Engine, p restore.Plan) tuner.Workload {
	parts := []any{cmp.Or(p.Precision, e.Build(p).Precision).Short()}
	for _, rt := range e.Candidates(p) {
		parts = append(parts, rt.Provider(), rt.Version(), rt.Threads(), rt.Settings())
	}
	height, width := p.Network()
	return tuner.Workload{Prior: e.Prior().SHA256, Runtime: digestOf(parts), Channels: p.Image.Channels, Height: height, Width: width}
}

// choose chooses the provider of a group of tasks, by a short measurement that is stored. A failed measurement is logged, and
// the engine's own runtime is used.
func (e engineRestorer) choose(tasks []*task) {
	first := tasks[0]
	engine, plan := first.assigned.Engine, first.Plan
	candidates := engine.Candidates(plan)
	if len(candidates) < 2 {
		return
	}
	w, own := raceWorkload(engine, plan), candidates[0].Provider()
	provider, known := e.cfg.Tuner.Fastest(w, own)
	if !known {
		a := e.watchdog.Begin(first.ctx, stageCompile, e.cfg.Limits.Compile, tasks...)
		defer a.End()
		times, err := engine.Race(a.Ctx, plan)
		if err != nil {
			e.cfg.Logger.Warn("could not measure providers", "using", own, "reason", a.Wrap(err))
			engine.Choose(plan, own)
			return
		}
		provider = e.cfg.Tuner.RecordRace(w, own, times)
	}
	engine.Choose(plan, provider)
}
