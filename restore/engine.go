package restore

import (
	"encoding/json"
	"fmt"

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

// key is equal for equal plans.
func (p Plan) key() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("plan %s: %w", p.Task, err)
	}
	return string(b), nil
}

// Engine compiles operators and solvers for one prior, and keeps the most recently used. It
// is used by one goroutine at a time.
type Engine struct {
	rt       *onnx.Runtime
	prior    *prior.Prior
	chunk    int
	forwards recent[*operator.Forward]
	solvers  recent[*solver.Solver]
	ops      map[string]*operator.Operator
}

// The numbers of compiled models that an Engine keeps. A solver holds a copy of the prior's
// weights and the noise of a chunk, an operator very little.
const (
	keptSolvers  = 3
	keptForwards = 16
)

// NewEngine makes an engine; chunk is the number of steps per call, 0 for the default.
func NewEngine(rt *onnx.Runtime, p *prior.Prior, chunk int) *Engine {
	return &Engine{
		rt: rt, prior: p, chunk: chunk,
		forwards: recent[*operator.Forward]{limit: keptForwards},
		solvers:  recent[*solver.Solver]{limit: keptSolvers},
		ops:      map[string]*operator.Operator{},
	}
}

// Prior is the score model that the engine solves with.
func (e *Engine) Prior() *prior.Prior { return e.prior }

// Runtime is what the engine computes on.
func (e *Engine) Runtime() *onnx.Runtime { return e.rt }

// Operator is the measurement operator of a plan.
func (e *Engine) Operator(p Plan) (*operator.Operator, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	if op, ok := e.ops[key]; ok {
		return op, nil
	}
	op, err := operator.New(p.Task, p.Params, p.Image)
	if err != nil {
		return nil, err
	}
	e.ops[key] = op
	return op, nil
}

// Forward is the compiled operator of a plan. It is the engine's: do not close it.
func (e *Engine) Forward(p Plan) (*operator.Forward, error) {
	op, err := e.Operator(p)
	if err != nil {
		return nil, err
	}
	key, err := Plan{Task: op.Task, Params: op.Params, Image: op.Image}.key()
	if err != nil {
		return nil, err
	}
	return e.forwards.get(key, func() (*operator.Forward, error) { return operator.NewForward(e.rt, op) })
}

// Solver is the compiled solver of a plan for batches of n. It is the engine's: do not close
// it, and do not keep it over the next call.
func (e *Engine) Solver(p Plan, n int) (*solver.Solver, error) {
	op, err := e.Operator(p)
	if err != nil {
		return nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	return e.solvers.get(fmt.Sprintf("%d %s", n, key), func() (*solver.Solver, error) {
		return solver.New(e.rt, e.prior, op, p.Solver, n, e.chunk)
	})
}

// Close releases everything that was compiled.
func (e *Engine) Close() {
	e.forwards.clear()
	e.solvers.clear()
}
