package restore

import (
	"cmp"
	"context"
	"fmt"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
)

// alternative is another runtime with its build.
type alternative struct {
	rt    *onnxruntime.Runtime
	build solver.Build
}

// alternativeOf returns the alternative of a runtime, the zero one if there is none.
func alternativeOf(rt *onnxruntime.Runtime, b solver.Build) alternative {
	other := rt.Alternative()
	if other == nil {
		return alternative{}
	}
	b.Precision = ""
	b, err := b.Complete(other)
	if err != nil {
		return alternative{}
	}
	return alternative{other, b}
}

// precision returns the precision of a plan's network.
func (e *Engine) precision(p Plan) onnxruntime.Precision {
	return cmp.Or(p.Precision, e.cfg.Build.Precision, onnxruntime.FP32)
}

// shortWork is the number of pixels times evaluations below which the CPU provider ends first: the first use of OpenVINO takes 1.2 to 2.2 s longer, and
// an evaluation of the bundled prior in float32 at most 0.3 µs a pixel less (docs/data/devices.csv).
const shortWork = 8 << 20

// Expect states the number of images that are restored with equal settings. It is unknown, and many, before.
func (e *Engine) Expect(images int) { e.expected.Store(int64(images)) }

// RuntimeFor returns the runtime of a plan's solver: the alternative of the engine's runtime, where it computes in the plan's precision,
// can make its steps, and the work is not short; else, and after Prefer where both compute in the precision, the engine's.
func (e *Engine) RuntimeFor(p Plan) *onnxruntime.Runtime {
	precision := e.precision(p)
	if e.rt.Alone(precision) && (e.own.Load() || e.short(p)) {
		return e.rt
	}
	if other := e.other().rt; other != nil && other.Alone(precision) && e.divisible(p) {
		return other
	}
	return e.rt
}

// short reports whether the expected images of a plan take less than shortWork.
func (e *Engine) short(p Plan) bool {
	m, err := e.cfg.Methods.Find(p.Solver.Method)
	if err != nil {
		return false
	}
	images := int(e.expected.Load())
	return images > 0 && images*m.Info().Evaluations(p.Solver)*p.Image.Height*p.Image.Width < shortWork
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

// Form returns the form of a plan's network for batches of n, "" for the exported one: that of the build, or the chosen one, which is known from the first
// Solver on. A step that differentiates the network, or evaluates it in a loop, has it as exported.
func (e *Engine) Form(p Plan, n int) prior.Form {
	form := e.cfg.Build.Form
	if chosen, ok := e.forms.Load(e.workload(p, n)); ok {
		form = chosen.(prior.Form)
	}
	if form == "" || e.RuntimeFor(p).Divides() || !e.divisible(p) {
		return ""
	}
	return form
}

// formFor is Form before a solver. It chooses if need be, and checks a stated form.
func (e *Engine) formFor(ctx context.Context, p Plan, n int) (prior.Form, error) {
	form, rt := e.Form(p, n), e.RuntimeFor(p)
	key := e.workload(p, n)
	if _, known := e.forms.Load(key); known || form == "" && e.cfg.ChooseOn != rt.Provider() || rt.Divides() || !e.divisible(p) {
		return form, nil
	}
	w := key
	w.Form = form
	c, err := e.prior.Choose(ctx, rt, w)
	if ctx.Err() != nil {
		return form, fmt.Errorf("choose the form of the network: %w", ctx.Err())
	}
	if err != nil {
		e.logger.Warn("the choice of the form of the network is not stored", "prior", e.prior.File, "reason", err)
	}
	for _, t := range c.Tried {
		if t.Left != "" {
			e.logger.Info("a form of the network is not used", "form", t.Form, "reason", t.Left)
		} else {
			e.logger.Info("timed a form of the network", "form", t.Form, "batch", n, "ms", t.Milliseconds, "chosen", t.Form == c.Form)
		}
	}
	if err := c.Err(w); err != nil {
		return form, err
	}
	if form == "" && c.Form != prior.Exported {
		form = c.Form
	}
	if !c.Undecided() {
		e.forms.Store(key, form)
	}
	return form, nil
}

// workload returns what a plan's network computes for batches of n.
func (e *Engine) workload(p Plan, n int) prior.Workload {
	h, w := p.Network()
	return prior.Workload{Images: n, Height: h, Width: w, Precision: e.precision(p)}
}

// Prefer chooses between the engine's runtime and its alternative by their provider, for all plans that both can compute.
func (e *Engine) Prefer(provider string) { e.own.Store(provider == e.rt.Provider()) }
