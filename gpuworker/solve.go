package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"ddiff/gpuworker/guard"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/solver"
	"ddiff/telemetry"
)

// restore solves the items of a group in batches, and sends the batches to out.
func (w *Worker) restore(ctx context.Context, tasks []*task, out chan<- []*task) error {
	for len(tasks) > 0 && ctx.Err() == nil {
		n, err := len(tasks), errCancelled
		if !tasks[0].assigned.cancelled() {
			n, err = w.restorer.solve(ctx, tasks)
		}
		if err == nil {
			out <- tasks[:n]
		} else if err := w.split(ctx, tasks[:n], err, out); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// split retries a failed batch in parts: in halves when memory is short, else item by item, so that a bad item does not
// affect the others. It settles a single item, and the items of a batch that hung: no further attempt is made.
func (w *Worker) split(ctx context.Context, failed []*task, reason error, out chan<- []*task) error {
	// A retry on this device would fail too; another worker may have another device.
	if errors.Is(reason, onnxruntime.ErrDeviceLost) || errors.Is(reason, onnxruntime.ErrFallback) {
		for _, t := range failed {
			t.fault = reason
		}
		return fmt.Errorf("solve: %w", reason)
	}
	o, size := outcomeOf(ctx, failed[0], reason), 1
	if len(failed) == 1 || o.why == drain || o.kind == dropped || errors.Is(reason, guard.ErrHung) {
		var errs error
		for _, t := range failed {
			errs = errors.Join(errs, w.settle(ctx, t, o, nil))
		}
		return errs
	}
	if errors.Is(reason, onnxruntime.ErrMemory) {
		size = len(failed) / 2
	}
	for len(failed) > 0 {
		n := min(size, len(failed))
		if err := w.restore(ctx, failed[:n], out); err != nil {
			return err
		}
		failed = failed[n:]
	}
	return nil
}

// solve implements restorer.
func (e engineRestorer) solve(ctx context.Context, tasks []*task) (int, error) {
	n := e.batchSize(tasks)
	err := e.solveBatch(ctx, tasks[:n])
	if errors.Is(err, onnxruntime.ErrMemory) {
		e.cfg.Tuner.RecordOutOfMemory(tasks[0].workload(), n)
	}
	return n, err
}

// batchSize returns the number of tasks to solve next. A size that the campaign does not set is a power of two, so that
// the last batches of a campaign compile no additional models.
func (e engineRestorer) batchSize(tasks []*task) int {
	a := tasks[0].assigned
	n := min(len(tasks), e.cfg.Tuner.Size(a.Campaign, tasks[0].workload(), a.Batch))
	if a.Batch == 0 {
		n = 1 << (bits.Len(uint(n)) - 1)
	}
	if a.Pixels > 0 {
		image := tasks[0].Op.Image
		n = min(n, max(DefaultBatch, a.Pixels/(image.Height*image.Width)))
	}
	return a.loader.Fitting(tasks[0].Plan, n)
}

// solveBatch solves a batch step by step. The device waits for whatever else is done here.
func (e engineRestorer) solveBatch(drain context.Context, tasks []*task) error {
	first, n := tasks[0], len(tasks)
	// Draining does not interrupt a step at once; the cancellation of the campaign does.
	lifetime, stop := first.assigned.withLifetime(context.WithoutCancel(drain))
	defer stop()
	e.device <- struct{}{}
	defer func() { <-e.device }()
	a := e.watchdog.Begin(lifetime, stageCompile, e.cfg.Limits.Compile, tasks...)
	defer a.End()
	// A drain ends a choice of the network's form, which takes up to a minute.
	compile, end := context.WithCancel(a.Ctx)
	defer end()
	defer context.AfterFunc(drain, end)()
	s, err := first.assigned.Engine.Solver(compile, first.Plan, n)
	if err != nil {
		return a.Wrap(err)
	}
	cost, err := s.Cost()
	if err != nil {
		return a.Wrap(err)
	}
	// A batch without a configured size counts as full.
	e.cfg.Instruments.BatchFill.Record(drain, float64(n)/float64(cmp.Or(first.assigned.Batch, n)))
	at, err := item.KeptStates(first.Item.KeepStates)
	if err != nil {
		return a.Wrap(err)
	}
	problems, states, curves, kept := make([]solver.Problem, n), make([]solver.State, n), make([]solver.Curves, n), make([]solver.Kept, n)
	var begins sync.WaitGroup
	for i, t := range tasks {
		problems[i] = t.Problem
		begins.Go(func() {
			if t.checkpoint == nil {
				states[i] = s.Start(t.Problem.Key)
				return
			}
			// The solver works in place, and the items of a failed batch are retried from their checkpoints.
			states[i], curves[i] = t.checkpoint.State.Clone(), t.checkpoint.Curves.Clone()
		})
	}
	begins.Wait()
	begin := e.cfg.Now()
	share := func() float64 { return e.cfg.Now().Sub(begin).Seconds() / float64(n) }
	ctx, endStage := e.cfg.Instruments.Stage(trace.ContextWithSpan(a.Ctx, trace.SpanFromContext(first.ctx)), e.cfg.Tracer, telemetry.StageRestore,
		attribute.String("ddiff.task", first.Plan.Task), attribute.Int("ddiff.batch", n), attribute.Int("ddiff.steps", s.Steps()))
	for _, t := range tasks[1:] {
		trace.SpanFromContext(ctx).AddLink(trace.LinkFromContext(t.ctx))
	}
	p := e.newProgress(ctx, a, s, first, states[0].Step, cost)
	e.cfg.Instruments.SolverTime.Add(ctx, 0, p.account) // Prometheus sees an increase only from an earlier value
	e.solving.Store(solvingOf(tasks, curves, states[0].Step, s.Steps(), 0))
	defer e.solving.Store(nil)
	for {
		err = s.ResumeKeeping(ctx, problems, states, curves, at, kept, func(step int) error {
			p.update(step)
			e.solving.Store(solvingOf(tasks, curves, step, s.Steps(), p.stepPerImage()))
			switch {
			case step == s.Steps():
				return nil
			case drain.Err() != nil:
				return drain.Err()
			case e.checks.Load() > 0:
				return errYield
			}
			return nil
		})
		if !errors.Is(err, errYield) {
			break
		}
		if s, err = p.yield(drain, first); err != nil {
			break
		}
	}
	err = a.Wrap(err)
	endStage(err, outcomeOf(drain, first, err).String())
	e.traceOthers(ctx, tasks[1:], p.began, err)
	if err != nil {
		a.End()
		if drain.Err() != nil && !first.assigned.cancelled() {
			e.storeCheckpoints(drain, tasks, states, curves, share())
			return err
		}
		for _, t := range tasks {
			t.seconds = t.spent() + share() // of a failed or dead item
		}
		return err
	}
	e.cfg.Tuner.Record(first.workload(), n, p.stepPerImage()/time.Duration(p.evaluations()))
	a.Next(stageDecode, e.cfg.Limits.Finish, false)
	answers, err := s.Answers(a.Ctx, states)
	if err != nil {
		return a.Wrap(err)
	}
	seconds := share()
	for i, t := range tasks {
		t.seconds, t.batch, t.cost = t.spent()+seconds, n, cost
		t.solution = solver.Solution{X: answers[i], Curves: curves[i], Kept: kept[i]}
	}
	return nil
}

// The stages of a batch in messages. The restore stage of the telemetry contains all of them.
const (
	stageCompile = "compile"
	stageSolve   = "solve"
	stageDecode  = "decode" // the answers of a latent prior
)

// maxStepSpans is the largest number of spans of the steps of a run: longer runs have several steps in one.
const maxStepSpans = 64

// progress follows the steps of one batch: it records spans and metrics, and limits each step.
type progress struct {
	engineRestorer
	ctx      context.Context
	activity *guard.Activity[*task]
	solver   *solver.Solver
	n        int // images
	cost     method.Cost
	account  metric.MeasurementOption // whose time it is
	step     int                      // the last one
	since    time.Time
	began    time.Time
	traced   int // the last step with a span, which ended at tracedAt
	tracedAt time.Time

	steps          int           // in spent
	first          time.Duration // limit of the first step
	longest, spent time.Duration
	warm           bool // the first step, which is slower, was made
}

// newProgress begins after a step, of the batch of a task. cost is that of an image.
func (e engineRestorer) newProgress(ctx context.Context, a *guard.Activity[*task], s *solver.Solver, t *task, step int, cost method.Cost) *progress {
	p := &progress{
		engineRestorer: e, ctx: ctx, activity: a, solver: s, n: s.Batch(), cost: cost, step: step, traced: step,
		account: metric.WithAttributes(telemetry.CampaignKey.String(t.Item.Campaign), telemetry.OwnerKey.String(t.assigned.Owner)),
	}
	p.began = e.cfg.Now()
	p.since, p.tracedAt = p.began, p.began
	expected := e.cfg.Tuner.Expected(t.workload()) * time.Duration(p.evaluations()*p.n)
	p.first = e.cfg.Limits.FirstStep(p.n, s.Tiles(), expected)
	a.Next(stageSolve, p.limit(), true)
	return p
}

// limit returns the limit of the next step.
func (p *progress) limit() time.Duration {
	if p.longest > 0 {
		return p.cfg.Limits.NextStep(p.longest)
	}
	return p.first
}

// update is called after every step with the number of steps since the start of the item.
func (p *progress) update(step int) {
	now, steps := p.cfg.Now(), step-p.step
	took := now.Sub(p.since)
	p.longest = max(p.longest, took)
	p.activity.Next(stageSolve, p.limit(), true)
	if total := p.solver.Steps(); step == total || (step-p.traced)*maxStepSpans >= total {
		p.trace(step, now)
	}
	p.cfg.Instruments.Steps.Add(p.ctx, int64(steps*p.n))
	p.cfg.Instruments.StepDuration.Record(p.ctx, took.Seconds()/float64(steps))
	p.cfg.Instruments.SolverTime.Add(p.ctx, took.Seconds(), p.account)
	p.countEvaluations(step)
	p.cfg.Steps(steps * p.n)
	if p.steps > 0 && !p.warm {
		p.spent, p.steps, p.warm = 0, 0, true
	}
	p.spent, p.steps = p.spent+took, p.steps+steps
	p.step, p.since = step, p.cfg.Now()
}

// trace records the span of the steps up to one, which ended at a time.
func (p *progress) trace(step int, now time.Time) {
	_, span := p.cfg.Tracer.Start(p.ctx, "steps", trace.WithTimestamp(p.tracedAt),
		trace.WithAttributes(attribute.Int("ddiff.step.first", p.traced+1), attribute.Int("ddiff.step.last", step)))
	span.End(trace.WithTimestamp(now))
	p.traced, p.tracedAt = step, now
}

// errYield stops a batch between two steps, for a preflight or a probe that waits.
var errYield = errors.New("a preflight or a probe waits for the device")

// interrupt takes the device between two steps of a batch, and returns the function that gives it back.
func (c *core) interrupt() func() {
	c.checks.Add(1)
	c.device <- struct{}{}
	return func() {
		<-c.device
		c.checks.Add(-1)
	}
}

// yield lets the one that waits use the device, and returns the solver for the rest of the batch: the other may have used or closed the
// former one, which belongs to the engine. The watchdog limits the other. The batch does not go on if the worker drains.
func (p *progress) yield(drain context.Context, t *task) (*solver.Solver, error) {
	if p.step > p.traced {
		p.trace(p.step, p.since)
	}
	p.activity.Next("wait for a preflight or a probe", math.MaxInt64, false)
	<-p.device
	p.device <- struct{}{}
	if err := cmp.Or(drain.Err(), p.ctx.Err()); err != nil {
		return nil, err
	}
	p.activity.Next(stageCompile, p.cfg.Limits.Compile, false)
	s, err := t.assigned.Engine.Solver(p.ctx, t.Plan, p.n)
	if err != nil {
		return nil, err
	}
	p.solver, p.longest = s, 0 // the next step is a first one
	p.activity.Next(stageSolve, p.limit(), true)
	p.since = p.cfg.Now()
	p.tracedAt = p.since
	return s, nil
}

// countEvaluations counts the evaluations of the network up to a step. The steps of a run need not have equal
// numbers: each gets a share, and the whole run the exact number.
func (p *progress) countEvaluations(step int) {
	total := p.solver.Steps()
	for pass, n := range map[string]int{"forward": p.cost.Network, "backward": p.cost.NetworkBackward} {
		if made := n*step/total - n*p.step/total; made > 0 {
			p.cfg.Instruments.NetworkEvaluations.Add(p.ctx, int64(made*p.n), metric.WithAttributes(telemetry.PassKey.String(pass)))
		}
	}
}

// traceOthers adds the restore stage to the traces of the other items of a batch, with links to the stage in ctx, which has
// the steps.
func (e engineRestorer) traceOthers(ctx context.Context, others []*task, began time.Time, err error) {
	for _, t := range others {
		_, span := e.cfg.Tracer.Start(t.ctx, telemetry.StageRestore, trace.WithTimestamp(began), trace.WithLinks(trace.LinkFromContext(ctx)))
		telemetry.EndSpan(span, err, outcomeOf(ctx, t, err).String())
	}
}

// evaluations returns the number of evaluations of the network in a step, 1 for a step with fewer.
func (p *progress) evaluations() int { return max(1, p.cost.Network/p.solver.Steps()) }

// stepPerImage returns the time of one step per image, without the first step unless it is the only one. It is 0 when
// no step was made.
func (p *progress) stepPerImage() time.Duration {
	if p.steps == 0 {
		return 0
	}
	return p.spent / time.Duration(p.steps*p.n)
}
