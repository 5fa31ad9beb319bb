package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/telemetry"
)

// restore solves the items of a group in batches, and sends the batches to out. It settles single items that failed, and the items of a batch that hung: no
// further attempt is made.
func (w *Worker) restore(ctx context.Context, tasks []*task, out chan<- []*task) error {
	solve := func(batch []*task) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case batch[0].assigned.cancelled():
			return errCancelled
		}
		return w.restorer.solve(ctx, batch)
	}
	final := func(err error) bool {
		o := outcomeOf(ctx, tasks[0], err)
		return o.why == drain || o.kind == dropped || onnxruntime.Unusable(err) || errors.Is(err, guard.ErrHung)
	}
	return job.Parts(tasks, w.restorer.size, solve, final, func(batch []*task, err error) error {
		if err == nil {
			out <- batch
			return nil
		}
		var errs error
		for _, t := range batch {
			if onnxruntime.Unusable(err) {
				t.fault = err
				errs = fmt.Errorf("solve: %w", err)
			} else {
				errs = errors.Join(errs, w.settle(ctx, t, outcomeOf(ctx, t, err), nil))
			}
		}
		return errs
	})
}

// size implements restorer. A size that the campaign does not set is a power of two, so that the last batches of a campaign compile no additional models.
func (e engineRestorer) size(tasks []*task) int {
	a := tasks[0].assigned
	n := min(len(tasks), e.cfg.Tuner.Size(a.Campaign, tasks[0].workload(), a.Batch))
	if a.Batch == 0 {
		n = job.PowerOfTwo(n)
	}
	if a.Pixels > 0 {
		image := tasks[0].Op.Image
		n = min(n, max(DefaultBatch, a.Pixels/(image.Height*image.Width)))
	}
	return a.loader.Fitting(tasks[0].Plan, n)
}

// solve implements restorer. The device waits for whatever else is done here.
func (e engineRestorer) solve(drain context.Context, tasks []*task) error {
	first, n := tasks[0], len(tasks)
	// Draining does not interrupt a step at once; the cancellation of the campaign does.
	lifetime, stop := first.assigned.withLifetime(context.WithoutCancel(drain))
	defer stop()
	e.device <- struct{}{}
	defer func() { <-e.device }()
	a := e.watchdog.Begin(lifetime, stageCompile, e.cfg.Limits.Compile, tasks...)
	defer a.End()
	ctx, end := context.WithCancel(a.Ctx)
	defer end()
	p := &progress{engineRestorer: e, drain: drain, activity: a, tasks: tasks}
	// A drain ends a choice of the network's form, which takes up to a minute.
	p.compiled = context.AfterFunc(drain, end)
	defer p.compiled()
	batch := job.Batch{Engine: first.assigned.Engine, Now: e.cfg.Now, Begin: p.begin, Step: p.update, Yield: p.yield}
	for _, t := range tasks {
		batch.Jobs = append(batch.Jobs, &t.Job)
	}
	err := a.Wrap(batch.Solve(ctx))
	p.end(err)
	if err == nil {
		e.cfg.Tuner.Record(first.workload(), n, p.stepPerImage()/time.Duration(p.evaluations()))
		return nil
	}
	if errors.Is(err, onnxruntime.ErrMemory) {
		e.cfg.Tuner.RecordOutOfMemory(first.workload(), n)
	}
	if drain.Err() != nil && !first.assigned.cancelled() {
		a.End()
		e.storeCheckpoints(drain, tasks)
	}
	return err
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
	drain    context.Context
	compiled func() bool // the drain ends the compilation no more
	activity *guard.Activity[*task]
	tasks    []*task

	course   job.Course
	ctx      context.Context // with the span of the stage
	endStage func(err error, outcome string)
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

// begin is called when the solver is there, and again after yield.
func (p *progress) begin(c job.Course) {
	again := p.endStage != nil
	p.course, p.longest = c, 0 // the next step is a first one
	p.since = p.cfg.Now()
	p.tracedAt = p.since
	if !again {
		p.compiled()
		p.beginStage()
	}
	p.activity.Next(stageSolve, p.limit(), true)
}

// beginStage begins the stage of the telemetry, which is that of the first item.
func (p *progress) beginStage() {
	first, n := p.tasks[0], len(p.tasks)
	p.began, p.step, p.traced = p.since, p.course.Done, p.course.Done
	// A batch without a configured size counts as full.
	p.cfg.Instruments.BatchFill.Record(p.drain, float64(n)/float64(cmp.Or(first.assigned.Batch, n)))
	p.ctx, p.endStage = p.cfg.Instruments.Stage(trace.ContextWithSpan(p.activity.Ctx, trace.SpanFromContext(first.ctx)), p.cfg.Tracer, telemetry.StageRestore,
		attribute.String("ddiff.task", first.Plan.Task), attribute.Int("ddiff.batch", n), attribute.Int("ddiff.steps", p.course.Steps))
	for _, t := range p.tasks[1:] {
		trace.SpanFromContext(p.ctx).AddLink(trace.LinkFromContext(t.ctx))
	}
	p.account = metric.WithAttributes(telemetry.CampaignKey.String(first.Item.Campaign), telemetry.OwnerKey.String(first.assigned.Owner))
	p.cfg.Instruments.SolverTime.Add(p.ctx, 0, p.account) // Prometheus sees an increase only from an earlier value
	expected := p.cfg.Tuner.Expected(first.workload()) * time.Duration(p.evaluations()*n)
	p.first = p.cfg.Limits.FirstStep(n, p.course.Tiles, expected)
	p.solving.Store(solvingOf(p.tasks, p.course.Curves, p.step, p.course.Steps, 0))
}

// end ends the stage in the traces of all items of the batch: those of the others have a link to that of the first, which has the steps.
func (p *progress) end(err error) {
	p.solving.Store(nil)
	if p.endStage == nil {
		return
	}
	p.endStage(err, outcomeOf(p.drain, p.tasks[0], err).String())
	for _, t := range p.tasks[1:] {
		_, span := p.cfg.Tracer.Start(t.ctx, telemetry.StageRestore, trace.WithTimestamp(p.began), trace.WithLinks(trace.LinkFromContext(p.ctx)))
		telemetry.EndSpan(span, err, outcomeOf(p.ctx, t, err).String())
	}
}

// limit returns the limit of the next step.
func (p *progress) limit() time.Duration {
	if p.longest > 0 {
		return p.cfg.Limits.NextStep(p.longest)
	}
	return p.first
}

// update is called after every step with the number of steps since the start of the item.
func (p *progress) update(step int) error {
	now, steps, n, total := p.cfg.Now(), step-p.step, len(p.tasks), p.course.Steps
	took := now.Sub(p.since)
	p.longest = max(p.longest, took)
	if step == total {
		p.activity.Next(stageDecode, p.cfg.Limits.Finish, false)
	} else {
		p.activity.Next(stageSolve, p.limit(), true)
	}
	if step == total || (step-p.traced)*maxStepSpans >= total {
		p.trace(step, now)
	}
	p.cfg.Instruments.Steps.Add(p.ctx, int64(steps*n))
	p.cfg.Instruments.StepDuration.Record(p.ctx, took.Seconds()/float64(steps))
	p.cfg.Instruments.SolverTime.Add(p.ctx, took.Seconds(), p.account)
	p.countEvaluations(step)
	p.cfg.Steps(steps * n)
	if p.steps > 0 && !p.warm {
		p.spent, p.steps, p.warm = 0, 0, true
	}
	p.spent, p.steps = p.spent+took, p.steps+steps
	p.step, p.since = step, p.cfg.Now()
	p.solving.Store(solvingOf(p.tasks, p.course.Curves, step, total, p.stepPerImage()))
	if p.drain.Err() == nil && p.checks.Load() > 0 {
		return job.ErrYield
	}
	return p.drain.Err()
}

// trace records the span of the steps up to one, which ended at a time.
func (p *progress) trace(step int, now time.Time) {
	_, span := p.cfg.Tracer.Start(p.ctx, "steps", trace.WithTimestamp(p.tracedAt),
		trace.WithAttributes(attribute.Int("ddiff.step.first", p.traced+1), attribute.Int("ddiff.step.last", step)))
	span.End(trace.WithTimestamp(now))
	p.traced, p.tracedAt = step, now
}

// interrupt takes the device between two steps of a batch, and returns the function that gives it back.
func (c *core) interrupt() func() {
	c.checks.Add(1)
	c.device <- struct{}{}
	return func() {
		<-c.device
		c.checks.Add(-1)
	}
}

// yield lets a preflight or a probe that waits use the device; the watchdog limits it. The batch does not go on if the worker drains.
func (p *progress) yield() error {
	if p.step > p.traced {
		p.trace(p.step, p.since)
	}
	p.activity.Next("wait for a preflight or a probe", math.MaxInt64, false)
	<-p.device
	p.device <- struct{}{}
	if err := cmp.Or(p.drain.Err(), p.ctx.Err()); err != nil {
		return err
	}
	p.activity.Next(stageCompile, p.cfg.Limits.Compile, false)
	return nil
}

// countEvaluations counts the evaluations of the network up to a step. The steps of a run need not have equal
// numbers: each gets a share, and the whole run the exact number.
func (p *progress) countEvaluations(step int) {
	total := p.course.Steps
	for pass, n := range map[string]int{"forward": p.course.Cost.Network, "backward": p.course.Cost.NetworkBackward} {
		if made := n*step/total - n*p.step/total; made > 0 {
			p.cfg.Instruments.NetworkEvaluations.Add(p.ctx, int64(made*len(p.tasks)), metric.WithAttributes(telemetry.PassKey.String(pass)))
		}
	}
}

// evaluations returns the number of evaluations of the network in a step, 1 for a step with fewer.
func (p *progress) evaluations() int { return max(1, p.course.Cost.Network/p.course.Steps) }

// stepPerImage returns the time of one step per image, without the first step unless it is the only one. It is 0 when
// no step was made.
func (p *progress) stepPerImage() time.Duration {
	if p.steps == 0 {
		return 0
	}
	return p.spent / time.Duration(p.steps*len(p.tasks))
}
