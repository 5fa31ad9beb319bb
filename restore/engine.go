package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// Plan is what items must agree on to be solved together.
type Plan struct {
	Task   string
	Params map[string]float64
	Image  operator.Shape
	Solver solver.Config
}

// Key is equal for equal plans.
func (p Plan) Key() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("plan %s: %w", p.Task, err)
	}
	return string(b), nil
}

// Engine compiles operators and solvers for one prior, and keeps the most recently used.
// Solver and what it returns are for one goroutine at a time; the other methods may be
// called beside it.
type Engine struct {
	rt    *onnx.Runtime
	prior *prior.Prior
	build solver.Build

	mu       sync.Mutex
	forwards recent[*operator.Forward]
	solvers  recent[*solver.Solver]
}

// The numbers of compiled models that an Engine keeps. A solver holds a copy of the prior's
// weights and the noise of a chunk, an operator very little.
const (
	keptSolvers  = 3
	keptForwards = 16
)

// NewEngine makes an engine; build says how its solvers are compiled, and is right when it
// is empty.
func NewEngine(rt *onnx.Runtime, p *prior.Prior, build solver.Build) *Engine {
	// What is wrong with the build is told where it is used.
	if b, err := build.Complete(rt); err == nil {
		build = b
	}
	return &Engine{
		rt: rt, prior: p, build: build,
		forwards: recent[*operator.Forward]{limit: keptForwards},
		solvers:  recent[*solver.Solver]{limit: keptSolvers},
	}
}

// Prior is the score model that the engine solves with.
func (e *Engine) Prior() *prior.Prior { return e.prior }

// Runtime is what the engine computes on.
func (e *Engine) Runtime() *onnx.Runtime { return e.rt }

// Build is how the engine's solvers are compiled, with nothing left out. A solver of fewer
// steps than a chunk makes them all in one call.
func (e *Engine) Build() solver.Build { return e.build }

// Measure simulates y = A(x) + N(0, sigma²) for one image; draw is the encoded mask or
// kernel, nil without one.
func (e *Engine) Measure(ctx context.Context, op *operator.Operator, x, draw []float32, sigma float64, key noise.Key) ([]float32, error) {
	return e.forward(op, func(f *operator.Forward) ([]float32, error) { return f.Measure(ctx, x, draw, sigma, key) })
}

// Apply is A(x) for one image.
func (e *Engine) Apply(ctx context.Context, op *operator.Operator, x, draw []float32) ([]float32, error) {
	return e.forward(op, func(f *operator.Forward) ([]float32, error) { return f.Apply(ctx, x, draw) })
}

func (e *Engine) forward(op *operator.Operator, use func(*operator.Forward) ([]float32, error)) ([]float32, error) {
	key, err := Plan{Task: op.Task, Params: op.Params, Image: op.Image}.Key()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f, err := e.forwards.get(key, func() (*operator.Forward, error) { return operator.NewForward(e.rt, op) })
	if err != nil {
		return nil, err
	}
	return use(f)
}

// Solver is the compiled solver of a plan for batches of n. It is the engine's: do not close
// it, and do not keep it over the next call.
func (e *Engine) Solver(p Plan, n int) (*solver.Solver, error) {
	op, err := operator.Builtin().New(p.Task, p.Params, p.Image)
	if err != nil {
		return nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	return e.solvers.get(fmt.Sprintf("%d %s", n, key), func() (*solver.Solver, error) {
		return solver.New(e.rt, e.prior, op, p.Solver, n, e.build)
	})
}

// Close releases everything that was compiled.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.forwards.clear(), e.solvers.clear())
}
