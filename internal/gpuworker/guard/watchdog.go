package guard

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// watchTick is the longest interval between two checks of a watchdog.
const watchTick = time.Second

// Subject is an item in a stage.
type Subject interface {
	// Logger adds the item's attributes.
	Logger(log *slog.Logger) *slog.Logger
}

// Watchdog limits the durations of a worker's stages, see Limits. A stage that exceeds its limit is interrupted and drains
// the worker. When an interrupted stage does not return, the watchdog closes Stuck.
//
// The watchdog adds up the time between its checks, and counts at most two intervals for each: a process that was
// suspended, or that the machine did not run, has not hung.
type Watchdog[T Subject] struct {
	limits Limits
	now    func() time.Time
	log    *slog.Logger
	// Stuck is closed when an interrupted stage does not return.
	Stuck chan struct{}

	mu         sync.Mutex
	activities map[*Activity[T]]bool
	drain      func()
	draining   bool          // the worker drains
	drained    time.Duration // since it drains
	hang       *HangError    // the first
}

// NewWatchdog returns a watchdog without stages.
func NewWatchdog[T Subject](limits Limits, now func() time.Time, log *slog.Logger) *Watchdog[T] {
	return &Watchdog[T]{
		limits: limits, now: now, log: log, Stuck: make(chan struct{}), activities: map[*Activity[T]]bool{}, drain: func() {},
	}
}

// Activity is a running stage.
type Activity[T Subject] struct {
	// Ctx ends when the stage is interrupted.
	Ctx    context.Context
	items  []T
	dog    *Watchdog[T]
	cancel context.CancelCauseFunc

	// The watchdog's mutex protects the other fields.
	stage         string
	limit         time.Duration
	interruptible bool
	spent         time.Duration // in the stage
	ignored       time.Duration // since the interruption
	hang          *HangError
}

// Begin starts a stage of tasks. The caller calls End after it. The stage should return when the activity's context ends.
func (d *Watchdog[T]) Begin(ctx context.Context, stage string, limit time.Duration, items ...T) *Activity[T] {
	a := &Activity[T]{items: items, dog: d, stage: stage, limit: limit}
	a.Ctx, a.cancel = context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.activities[a] = true
	return a
}

// Next starts the next stage of the same tasks. An interruptible stage must return soon after the end of the context of
// Begin, and is also interrupted while the worker drains.
func (a *Activity[T]) Next(stage string, limit time.Duration, interruptible bool) {
	a.dog.mu.Lock()
	defer a.dog.mu.Unlock()
	a.stage, a.limit, a.interruptible, a.spent = stage, limit, interruptible, 0
}

// End ends the stage.
func (a *Activity[T]) End() {
	a.dog.mu.Lock()
	delete(a.dog.activities, a)
	a.dog.mu.Unlock()
	a.cancel(nil)
}

// Wrap returns the hang of the stage in place of the error that its interruption caused.
func (a *Activity[T]) Wrap(err error) error {
	a.dog.mu.Lock()
	defer a.dog.mu.Unlock()
	if err != nil && a.hang != nil {
		return a.hang
	}
	return err
}

// Active reports whether a stage runs.
func (d *Watchdog[T]) Active() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.activities) > 0
}

// Failure returns the first hang, or nil.
func (d *Watchdog[T]) Failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hang == nil {
		return nil // not a nil *HangError
	}
	return d.hang
}

// OnHang sets what the first hang does: it drains the worker.
func (d *Watchdog[T]) OnHang(drain func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drain = drain
}

// SetDraining tells the watchdog that the worker drains.
func (d *Watchdog[T]) SetDraining() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
}

// Run checks the stages until ctx ends.
func (d *Watchdog[T]) Run(ctx context.Context) error {
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
		d.Check(min(now.Sub(last), 2*interval))
		last = now
	}
}

// interval returns the time between two checks: small compared with every limit.
func (d *Watchdog[T]) interval() time.Duration {
	l := d.limits
	least := min(l.Prepare, l.Compile, l.Solve/stepFloor, l.Finish, l.Drain, l.Stop)
	return max(min(watchTick, least/4), time.Millisecond)
}

// Check adds the passed time to all stages, and interrupts those at their limits.
func (d *Watchdog[T]) Check(passed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		d.drained += passed
	}
	for a := range d.activities {
		a.spent += passed
		switch {
		case a.hang != nil, a.interruptible && a.Ctx.Err() != nil:
			if a.ignored += passed; a.ignored >= d.limits.Stop {
				d.setStuck(a)
			}
		case a.spent >= a.limit:
			a.hang = &HangError{Stage: a.stage, Took: a.spent, Limit: a.limit, Items: len(a.items)}
			d.setHang(a)
			a.cancel(a.hang)
		case a.interruptible && d.drained >= d.limits.Drain:
			d.log.Info("interrupted a stage, because the worker drains", "stage", a.stage, "after", a.spent)
			a.cancel(context.Canceled)
		}
	}
}

// setHang records the hang of a stage and drains the worker.
func (d *Watchdog[T]) setHang(a *Activity[T]) {
	for _, t := range a.items {
		t.Logger(d.log).Error("an item hung", "reason", a.hang)
	}
	if d.hang == nil {
		d.hang = a.hang
		d.drain()
	}
}

// setStuck records that an interrupted stage does not return.
func (d *Watchdog[T]) setStuck(a *Activity[T]) {
	if a.hang == nil {
		a.hang = &HangError{Stage: a.stage, Took: a.ignored, Items: len(a.items)}
		d.setHang(a)
	}
	select {
	case <-d.Stuck:
	default:
		close(d.Stuck)
	}
}
