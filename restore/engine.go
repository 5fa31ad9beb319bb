package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// Plan describes a batch: items with equal plans are solved together.
type Plan struct {
	Task   string
	Params map[string]float64
	Image  operator.Shape
	Solver method.Settings
	// Own is the operator from a file, Task then only its name. Nil: Task is one of the engine's operators.
	Own *operator.File `json:",omitempty"`
	// Given: the items have a file of the task's input, for a task with [operator.Definition.Given].
	Given bool `json:",omitempty"`
	// Weighted: the pixels of y have weights.
	Weighted bool `json:",omitempty"`
	// Precision of the score network. Empty: that of the engine's build.
	Precision onnxruntime.Precision `json:",omitempty"`
	// Tiles is the size of the tiles in which the network predicts. Zero: the whole image.
	Tiles prior.Tiling `json:",omitzero"`
}

// Divided reports whether the images have several tiles.
func (p Plan) Divided() bool { return p.Tiles.Divides(p.Image.Height, p.Image.Width) }

// Network returns the size of the images at which the network predicts: that of a tile, or of the whole image.
func (p Plan) Network() (height, width int) {
	if p.Tiles.Side == 0 {
		return p.Image.Height, p.Image.Width
	}
	return min(p.Image.Height, p.Tiles.Side), min(p.Image.Width, p.Tiles.Side)
}

// Key is equal for equal plans.
func (p Plan) Key() (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("plan %s: %w", p.Task, err)
	}
	return string(b), nil
}

// Config describes an engine. The zero value is valid.
type Config struct {
	// Build has the settings of the compilation. Default: by provider.
	Build solver.Build
	// Methods are the restoration methods. Default: method.Builtin.
	Methods method.Set
	// Operators are the tasks. Default: operator.Builtin.
	Operators operator.Set
	// ChooseOn is a provider on which the engine computes networks in their fastest form, see prior.Prior.Choose, if Build states none.
	ChooseOn string
}

// Engine compiles operators and solvers for one prior and keeps the most recently used ones. One goroutine at a time uses
// Solver and the solver that it returns; the other methods are safe beside it.
type Engine struct {
	rt       *onnxruntime.Runtime
	prior    *prior.Prior
	cfg      Config
	other    func() alternative // opened when a plan asks for it
	own      atomic.Bool        // rt computes what both can
	expected atomic.Int64       // images of Expect
	steps    sync.Map           // whether other can make the steps of a plan, by its key
	forms    sync.Map           // chosen, by workload
	logger   *slog.Logger
	// Doubt is a line on a card that is probably wrong, see [prior.Verification], or empty.
	Doubt string

	making sync.Mutex
	made   []entry[*operator.Operator] // the oldest first

	forwards forwards
	applied  chan struct{} // has an element for each operator in use
	alone    sync.Mutex    // of an operator of a large image
	solvers  recent[*solver.Solver]
	large    bool // a solver of a large image is kept, alone
}

// The numbers of compiled models that an Engine keeps, and of operators that it uses at a time. A solver holds a copy of the prior's weights and the noise
// of a step, an operator very little, unless it is a network of a file.
const (
	keptSolvers  = 3
	keptForwards = 16
	mostForwards = 4
)

// largeImage is the number of pixels from which compiled models are not kept beside others: their tensors take more memory than a prior.
const largeImage = 1 << 20

// NewEngine returns an engine. Close it after use. Solver reports invalid build settings.
func NewEngine(rt *onnxruntime.Runtime, p *prior.Prior, cfg Config) *Engine {
	stated := cfg.Build
	if b, err := cfg.Build.Complete(rt); err == nil {
		cfg.Build = b
	}
	return &Engine{
		rt: rt, prior: p, cfg: cfg, other: sync.OnceValue(func() alternative { return alternativeOf(rt, stated) }),
		logger:  slog.New(slog.DiscardHandler),
		applied: make(chan struct{}, mostForwards),
		solvers: recent[*solver.Solver]{limit: keptSolvers},
	}
}

// OpenEngine verifies a prior, see [prior.Prior.Verify], and returns an engine for it. It logs what OpenVINO does not compute as it should.
func OpenEngine(ctx context.Context, rt *onnxruntime.Runtime, p *prior.Prior, cfg Config, logger *slog.Logger) (*Engine, error) {
	v, err := p.Verify(ctx, rt)
	if err != nil {
		return nil, err
	}
	e := NewEngine(rt, p, cfg)
	e.logger = logger
	if v.Doubt != "" {
		e.Doubt = fmt.Sprintf("prior %s: its card is probably wrong: %s", p.File, v.Doubt)
		logger.Warn("the card of the prior is probably wrong", "prior", p.File, "reason", v.Doubt)
	}
	switch {
	case v.CPU != "":
		logger.Warn("the CPU provider computes the network, because OpenVINO cannot", "prior", p.File, "reason", v.CPU)
		e.other = func() alternative { return alternative{} }
	case v.Unfused != "":
		logger.Warn("OpenVINO computes the network as it is in the file, more slowly", "prior", p.File, "reason", v.Unfused)
	}
	return e, nil
}

// Prior is the score model that the engine solves with.
func (e *Engine) Prior() *prior.Prior { return e.prior }

// Runtime is the engine's runtime. RuntimeFor is that of a plan's solver.
func (e *Engine) Runtime() *onnxruntime.Runtime { return e.rt }

// Build returns the build of a plan's solver with all defaults filled in.
func (e *Engine) Build(p Plan) solver.Build {
	b := e.cfg.Build
	if e.RuntimeFor(p) != e.rt {
		b = e.other().build
	}
	b.Precision = e.precision(p)
	if p.Divided() {
		b = b.ForTiles()
	}
	return b
}

// Settings returns the settings of the runtime that computes a plan for batches of n, see [onnxruntime.Runtime.NetworkSettings].
func (e *Engine) Settings(p Plan, n int) map[string]string {
	rt := e.RuntimeFor(p)
	if e.Form(p, n).Graph() {
		rt = rt.Capturing()
	}
	return rt.NetworkSettings(e.precision(p))
}

// Operator returns the operator of a plan. The last ones stay, as their decomposition takes long, but not those of large images, whose matrices are.
func (e *Engine) Operator(p Plan) (*operator.Operator, error) {
	key, err := Plan{Task: p.Task, Params: p.Params, Image: p.Image, Own: p.Own, Given: p.Given}.Key()
	if err != nil {
		return nil, err
	}
	e.making.Lock()
	defer e.making.Unlock()
	if i := slices.IndexFunc(e.made, func(m entry[*operator.Operator]) bool { return m.key == key }); i >= 0 {
		return e.made[i].value, nil
	}
	op, err := e.operators(p).New(p.Task, p.Params, p.Image)
	if err != nil || p.Image.Height*p.Image.Width > largeImage {
		return op, err
	}
	e.made = append(e.made[max(0, len(e.made)+1-keptForwards):], entry[*operator.Operator]{key, op})
	return op, nil
}

// operators returns the operators among which a plan's task is found.
func (e *Engine) operators(p Plan) operator.Set {
	if p.Own != nil {
		return operator.Set{p.Own.Definition(p.Task)}
	}
	if p.Given {
		if d, err := e.cfg.Operators.Definition(p.Task, true); err == nil {
			return operator.Set{d}
		}
	}
	return e.cfg.Operators
}

// Supports returns the reason why this version of the program does not know the task, the method or one of their
// parameters, or nil.
func (e *Engine) Supports(p Plan) error {
	if _, err := e.operators(p).Parameters(p.Task, p.Params); err != nil {
		return err
	}
	m, err := e.cfg.Methods.Find(p.Solver.Method)
	if err != nil {
		return err
	}
	if err := p.Solver.Check(m.Info(), e.prior.Schedule.Steps()); err != nil {
		return err
	}
	if err := p.Tiles.Validate(e.prior.Card.MultipleOf); err != nil || !p.Divided() {
		return err
	}
	return m.Info().Tiled()
}

// Run checks the settings of a plan and lays out its steps, without compiling them.
func (e *Engine) Run(p Plan) (*method.Run, error) {
	op, err := e.Operator(p)
	if err != nil {
		return nil, err
	}
	m, err := e.cfg.Methods.Find(p.Solver.Method)
	if err != nil {
		return nil, err
	}
	run, err := method.NewRun(m, p.Solver, e.prior, op)
	if err != nil {
		return nil, err
	}
	run.Weighted = p.Weighted
	if err := run.Tile(p.Tiles); err != nil {
		return nil, err
	}
	return run, nil
}

// Measure simulates a measurement of one image: A(x) with noise. draw is the encoded mask or kernel, nil without one.
func (e *Engine) Measure(ctx context.Context, op *operator.Operator, x, draw []float32, n operator.Noise, key noise.Key) ([]float32, error) {
	return e.forward(op, func(f *operator.Forward) ([]float32, error) { return f.Measure(ctx, x, draw, n, key) })
}

// Apply is A(x) for one image.
func (e *Engine) Apply(ctx context.Context, op *operator.Operator, x, draw []float32) ([]float32, error) {
	return e.forward(op, func(f *operator.Forward) ([]float32, error) { return f.Apply(ctx, x, draw) })
}

func (e *Engine) forward(op *operator.Operator, use func(*operator.Forward) ([]float32, error)) ([]float32, error) {
	key, err := Plan{Task: op.Task, Params: op.Params, Image: op.Image, Own: op.Own, Given: op.Definition.IsGiven()}.Key()
	if err != nil {
		return nil, err
	}
	if op.Image.Height*op.Image.Width > largeImage { // its tensors are not kept
		e.alone.Lock()
		defer e.alone.Unlock()
		f, err := operator.NewForward(e.rt, op)
		if err != nil {
			return nil, err
		}
		out, err := use(f)
		return out, errors.Join(err, f.Close())
	}
	e.applied <- struct{}{}
	defer func() { <-e.applied }()
	return e.forwards.apply(key, func() (*operator.Forward, error) { return operator.NewForward(e.rt, op) }, use)
}

// Solver returns the compiled solver of a plan for batches of n. The engine owns it: do not close it, and do not use it
// after the next call. The context ends a choice of the network's form.
func (e *Engine) Solver(ctx context.Context, p Plan, n int) (*solver.Solver, error) {
	run, err := e.Run(p)
	if err != nil {
		return nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, err
	}
	rt := e.RuntimeFor(p)
	build := e.Build(p)
	if build.Form, err = e.formFor(ctx, p, n); err != nil {
		return nil, err
	}
	key = fmt.Sprintf("%s %s %d %s", rt.Provider(), build.Form, n, key)
	if err := e.solvers.rekey(key, func(s *solver.Solver) (bool, error) { return s.Reuse(rt, run, n, build) }); err != nil {
		return nil, err
	}
	return e.solvers.get(key, func() (*solver.Solver, error) {
		if large := p.Divided() && p.Image.Height*p.Image.Width > largeImage; large || e.large {
			if err := e.solvers.clear(); err != nil {
				return nil, fmt.Errorf("make room for a model: %w", err)
			}
			e.large = large
		}
		return solver.New(rt, run, n, build)
	})
}

// Close releases everything that was compiled.
func (e *Engine) Close() error {
	errs := []error{e.solvers.clear()}
	for _, f := range e.forwards.idle {
		errs = append(errs, f.value.Close())
	}
	e.forwards.idle = nil
	return errors.Join(errs...)
}
