package restore

import (
	"cmp"
	"context"
	"time"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// choices are the decisions between an engine's two runtimes.
type choices struct {
	preferred string // a provider; empty: by workload
	faster    map[workload]string
	divisible map[string]bool // by the key of a plan
}

// workload is what the time of a network depends on.
type workload struct {
	image     operator.Shape // of the network's input
	precision onnxruntime.Precision
}

func newWorkload(p Plan, precision onnxruntime.Precision) workload {
	image := p.Image
	image.Height, image.Width = p.Network()
	return workload{image, precision}
}

func newChoices() choices {
	return choices{faster: map[workload]string{}, divisible: map[string]bool{}}
}

// alternative returns the alternative of a runtime and its build, or nil if it does not have one.
func alternative(rt *onnxruntime.Runtime, b solver.Build) (*onnxruntime.Runtime, solver.Build) {
	other := rt.Alternative()
	if other == nil {
		return nil, b
	}
	b.Precision = ""
	b, err := b.Complete(other)
	if err != nil {
		return nil, b
	}
	return other, b
}

// precision returns the precision of a plan's network.
func (e *Engine) precision(p Plan) onnxruntime.Precision {
	return cmp.Or(p.Precision, e.cfg.Build.Precision, onnxruntime.FP32)
}

// RuntimeFor returns the runtime of a plan's solver: the engine's, or its alternative where only that one computes in the
// plan's precision, or where it was chosen.
func (e *Engine) RuntimeFor(p Plan) *onnxruntime.Runtime {
	precision := e.precision(p)
	if e.other == nil || !e.other.Alone(precision) || !e.divisible(p) {
		return e.rt
	}
	if !e.rt.Alone(precision) {
		return e.other
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if cmp.Or(e.choices.preferred, e.choices.faster[newWorkload(p, precision)]) == e.other.Provider() {
		return e.other
	}
	return e.rt
}

// divisible reports whether the alternative can make the steps of a plan. One without a task stands for any.
func (e *Engine) divisible(p Plan) bool {
	if p.Task == "" {
		return true
	}
	key, err := p.Key()
	if err != nil {
		return false
	}
	e.mu.Lock()
	known, ok := e.choices.divisible[key]
	e.mu.Unlock()
	if ok {
		return known
	}
	run, err := e.Run(p)
	known = err == nil && solver.Divisible(run) == nil
	e.mu.Lock()
	defer e.mu.Unlock()
	e.choices.divisible[key] = known
	return known
}

// Candidates returns the runtimes among which a measurement chooses for a plan: those that compute in its precision and can
// make its steps. The first is the engine's. There is no choice after Prefer.
func (e *Engine) Candidates(p Plan) []*onnxruntime.Runtime {
	e.mu.Lock()
	preferred := e.choices.preferred
	e.mu.Unlock()
	precision := e.precision(p)
	if preferred != "" || e.other == nil || !e.rt.Alone(precision) || !e.other.Alone(precision) || !e.divisible(p) {
		return []*onnxruntime.Runtime{e.rt}
	}
	return []*onnxruntime.Runtime{e.rt, e.other}
}

// Prefer chooses a provider for all plans, as far as it can compute them. Unknown providers have no effect.
func (e *Engine) Prefer(provider string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.choices.preferred = provider
}

// Choose sets the provider of plans with the image shape and the precision of p, after a measurement.
func (e *Engine) Choose(p Plan, provider string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.choices.faster[newWorkload(p, e.precision(p))] = provider
}

// raceRounds is the number of timed evaluations for each candidate.
const raceRounds = 3

// Race returns the shortest time of one evaluation of the network for one image of a plan's shape, by provider. The
// candidates take turns, so that other work of the machine slows all of them.
func (e *Engine) Race(ctx context.Context, p Plan) (_ map[string]time.Duration, err error) {
	candidates, precision := e.Candidates(p), e.precision(p)
	height, width := p.Network()
	networks := make([]*prior.Network, len(candidates))
	defer func() {
		for _, n := range networks {
			if n != nil {
				n.Close()
			}
		}
	}()
	for i, rt := range candidates {
		if networks[i], err = e.prior.Compile(rt, 1, height, width, precision); err != nil {
			return nil, err
		}
		if err := networks[i].Run(ctx); err != nil { // the first call is slower
			return nil, err
		}
	}
	best := map[string]time.Duration{}
	for range raceRounds {
		for i, rt := range candidates {
			begin := time.Now()
			if err := networks[i].Run(ctx); err != nil {
				return nil, err
			}
			took := max(time.Since(begin), 1)
			if known, ok := best[rt.Provider()]; !ok || took < known {
				best[rt.Provider()] = took
			}
		}
	}
	return best, nil
}
