package gpuworker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// watchTick is the longest interval between two checks of a watchdog.
const watchTick = time.Second

// watchdog limits the durations of a worker's stages, see Limits. A stage that exceeds its limit is interrupted and drains
// the worker. When an interrupted stage does not return, the watchdog closes stuck.
//
// The watchdog adds up the time between its checks, and counts at most two intervals for each: a process that was
// suspended, or that the machine did not run, has not hung.
type watchdog struct {
	limits Limits
	now    func() time.Time
	log    *slog.Logger
	stuck  chan struct{}

	mu         sync.Mutex
	activities map[*activity]bool
	drain      func()        // drains the worker
	draining   bool          // the worker drains
	drained    time.Duration // since it drains
	hang       *hangError    // the first
}

func newWatchdog(limits Limits, now func() time.Time, log *slog.Logger) *watchdog {
	return &watchdog{
		limits: limits, now: now, log: log, stuck: make(chan struct{}), activities: map[*activity]bool{}, drain: func() {},
	}
}

// activity is a running stage.
type activity struct {
	ctx    context.Context // ends when the stage is interrupted
	tasks  []*task
	dog    *watchdog
	cancel context.CancelCauseFunc

	// The watchdog's mutex protects the other fields.
	stage         string
	limit         time.Duration
	interruptible bool
	spent         time.Duration // in the stage
	ignored       time.Duration // since the interruption
	hang          *hangError
}

// begin starts a stage of tasks. The caller calls end after it. The stage should return when the activity's context ends.
func (d *watchdog) begin(ctx context.Context, stage string, limit time.Duration, tasks ...*task) *activity {
	a := &activity{tasks: tasks, dog: d, stage: stage, limit: limit}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.activities[a] = true
	return a
}

// next starts the next stage of the same tasks. An interruptible stage must return soon after the end of the context of
// begin, and is also interrupted while the worker drains.
func (a *activity) next(stage string, limit time.Duration, interruptible bool) {
	a.dog.mu.Lock()
	defer a.dog.mu.Unlock()
	a.stage, a.limit, a.interruptible, a.spent = stage, limit, interruptible, 0
}

// end ends the stage.
func (a *activity) end() {
	a.dog.mu.Lock()
	delete(a.dog.activities, a)
	a.dog.mu.Unlock()
	a.cancel(nil)
}

// wrap returns the hang of the stage in place of the error that its interruption caused.
func (a *activity) wrap(err error) error {
	a.dog.mu.Lock()
	defer a.dog.mu.Unlock()
	if err != nil && a.hang != nil {
		return a.hang
	}
	return err
}

// active reports whether a stage runs.
func (d *watchdog) active() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.activities) > 0
}

// failure returns the first hang, or nil.
func (d *watchdog) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hang == nil {
		return nil // not a nil *hangError
	}
	return d.hang
}

// setDraining tells the watchdog that the worker drains.
func (d *watchdog) setDraining() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
}

// hung returns the tasks of the running stages that exceeded their limits, with the reasons.
func (d *watchdog) hung() map[*task]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tasks := map[*task]error{}
	for a := range d.activities {
		if a.hang == nil || a.hang.limit == 0 {
			continue
		}
		for _, t := range a.tasks {
			tasks[t] = a.hang
		}
	}
	return tasks
}

// run checks the stages until ctx ends.
func (d *watchdog) run(ctx context.Context) error {
	interval := d.interval()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for last := d.now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now := d.now()
		d.check(min(now.Sub(last), 2*interval))
		last = now
	}
}

// interval returns the time between two checks: small compared with every limit.
func (d *watchdog) interval() time.Duration {
	l := d.limits
	least := min(l.Prepare, l.Compile, l.Solve/chunkFloor, l.Finish, l.Drain, l.Stop)
	return max(min(watchTick, least/4), time.Millisecond)
}

// check adds the passed time to all stages, and interrupts those at their limits.
func (d *watchdog) check(passed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		d.drained += passed
	}
	for a := range d.activities {
		a.spent += passed
		switch {
		case a.hang != nil, a.interruptible && a.ctx.Err() != nil:
			if a.ignored += passed; a.ignored >= d.limits.Stop {
				d.setStuck(a)
			}
		case a.spent >= a.limit:
			a.hang = &hangError{stage: a.stage, took: a.spent, limit: a.limit, items: len(a.tasks)}
			d.setHang(a)
			a.cancel(a.hang)
		case a.interruptible && d.drained >= d.limits.Drain:
			d.log.Info("interrupted a stage, because the worker drains", "stage", a.stage, "after", a.spent)
			a.cancel(context.Canceled)
		}
	}
}

// setHang records the hang of a stage and drains the worker.
func (d *watchdog) setHang(a *activity) {
	for _, t := range a.tasks {
		t.logger(d.log).Error("an item hung", "reason", a.hang)
	}
	if d.hang == nil {
		d.hang = a.hang
		d.drain()
	}
}

// setStuck records that an interrupted stage does not return.
func (d *watchdog) setStuck(a *activity) {
	if a.hang == nil {
		a.hang = &hangError{stage: a.stage, took: a.ignored, items: len(a.tasks)}
		d.setHang(a)
	}
	select {
	case <-d.stuck:
	default:
		close(d.stuck)
	}
}
