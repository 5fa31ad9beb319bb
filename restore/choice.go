package restore

import (
	"cmp"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/solver"
)

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

// RuntimeFor returns the runtime of a plan's solver: the alternative of the engine's runtime, where it computes in the plan's precision and
// can make its steps; else, and after Prefer where both compute in the precision, the engine's.
func (e *Engine) RuntimeFor(p Plan) *onnxruntime.Runtime {
	precision := e.precision(p)
	if e.other == nil || !e.other.Alone(precision) || e.own.Load() && e.rt.Alone(precision) || !e.divisible(p) {
		return e.rt
	}
	return e.other
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
	if known, ok := e.steps.Load(key); ok {
		return known.(bool)
	}
	run, err := e.Run(p)
	known := err == nil && solver.Divisible(run) == nil
	e.steps.Store(key, known)
	return known
}

// Prefer chooses between the engine's runtime and its alternative by their provider, for all plans that both can compute.
func (e *Engine) Prefer(provider string) { e.own.Store(provider == e.rt.Provider()) }
