package guard

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// subject is one without attributes.
type subject int

func (subject) Logger(log *slog.Logger) *slog.Logger { return log }

// A slow machine is not a hung one: the limits of steps follow the measured durations.
func TestLimitsFollowMeasurements(t *testing.T) {
	t.Parallel()
	l := Limits{Solve: time.Minute}.WithDefaults()
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"first step of a new workload", l.FirstStep(1, 1, 0), time.Minute},
		{"of a batch", l.FirstStep(4, 1, 0), 4 * time.Minute},
		{"of a large batch", l.FirstStep(64, 1, 0), 8 * time.Minute},
		{"of a measured workload", l.FirstStep(1, 1, 10*time.Second), 1000 * time.Second},
		{"step after a short one", l.NextStep(time.Millisecond), 6 * time.Second},
		{"step after a long one", l.NextStep(time.Hour), 100 * time.Hour},
	} {
		if c.got != c.want {
			t.Errorf("%s: the limit is %v, want %v", c.name, c.got, c.want)
		}
	}
}

func newTestDog() (*Watchdog[subject], *int) {
	d := NewWatchdog[subject](Limits{}.WithDefaults(), time.Now, slog.New(slog.DiscardHandler))
	drains := 0
	d.drain = func() { drains++ }
	return d, &drains
}

// Each step has the whole limit; the stage that exceeds it is interrupted once, and stuck when it does not return.
func TestWatchdogInterruptsStage(t *testing.T) {
	t.Parallel()
	d, drains := newTestDog()
	a, other := d.Begin(t.Context(), "solve", time.Minute), d.Begin(t.Context(), "write", time.Hour)
	defer other.End()
	for range 5 {
		d.Check(59 * time.Second)
		a.Next("solve", time.Minute, true)
	}
	if a.Ctx.Err() != nil || d.Failure() != nil {
		t.Fatalf("a stage within its limit was interrupted: %v", d.Failure())
	}
	d.Check(time.Minute)
	d.Check(time.Second)
	if a.Ctx.Err() == nil || other.Ctx.Err() != nil || *drains != 1 {
		t.Errorf("%v, %v, %d drains", a.Ctx.Err(), other.Ctx.Err(), *drains)
	}
	if err := d.Failure(); err == nil || err.Error() != "the worker hung: stage solve took 1m0s, its limit is 1m0s" {
		t.Errorf("failure %v", err)
	}
	if err := a.Wrap(context.Canceled); err == nil || err.Error() != d.Failure().Error() {
		t.Errorf("the stage ended with %v", err)
	}
	select {
	case <-d.Stuck:
		t.Error("the stage is stuck after a second")
	default:
	}
	d.Check(d.limits.Stop)
	<-d.Stuck
	a.End()
	if a.Wrap(nil) != nil {
		t.Error("a stage that succeeded has an error")
	}
}

// A cancelled campaign and a draining worker interrupt the solver, but no other stage.
func TestWatchdogWaitsForOtherStages(t *testing.T) {
	t.Parallel()
	d, _ := newTestDog()
	ctx, cancel := context.WithCancel(t.Context())
	solve, write := d.Begin(ctx, "solve", time.Hour), d.Begin(ctx, "write", time.Hour)
	solve.Next("solve", time.Hour, true)
	d.Check(d.limits.Drain)
	d.SetDraining()
	if d.Check(d.limits.Drain - 1); solve.Ctx.Err() != nil {
		t.Error("interrupted before the time to drain")
	}
	d.Check(1)
	if solve.Ctx.Err() == nil || write.Ctx.Err() != nil {
		t.Errorf("after the time to drain: %v, %v", solve.Ctx.Err(), write.Ctx.Err())
	}
	solve.End()
	cancel()
	for range 3 {
		d.Check(d.limits.Stop)
	}
	if d.Failure() != nil {
		t.Errorf("a stage that cannot be interrupted: %v", d.Failure())
	}
	write.End()

	stuck := d.Begin(ctx, "solve", time.Hour)
	stuck.Next("solve", time.Hour, true)
	d.Check(d.limits.Stop)
	<-d.Stuck
	if err := d.Failure(); err == nil || err.Error() != "the worker hung: stage solve did not end within 10s after its interruption" {
		t.Errorf("failure %v", err)
	}
	stuck.End()
}

// The clock jumps by hours while the process is suspended: nothing has hung.
func TestSuspensionDoesNotCount(t *testing.T) {
	t.Parallel()
	now, calls := time.Now(), make(chan time.Time)
	d, drains := newTestDog()
	d.limits.Drain = 8 * time.Millisecond // the interval of the checks is a quarter
	d.now = func() time.Time { return <-calls }
	a := d.Begin(t.Context(), "solve", time.Minute)
	defer a.End()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for i := range 10 {
		calls <- now.Add(time.Duration(i) * time.Hour)
	}
	cancel()
	for done := false; !done; {
		select {
		case calls <- now.Add(10 * time.Hour):
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("run returned %v", err)
			}
			done = true
		}
	}
	if a.Ctx.Err() != nil || *drains != 0 || a.spent == 0 || a.spent > 100*time.Millisecond {
		t.Errorf("the stage counts %v, %v", a.spent, d.Failure())
	}
}

func TestLimitsNameField(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]Limits{
		"Prepare": {Prepare: -1}, "Compile": {Compile: -1}, "Solve": {Solve: -1}, "Finish": {Finish: -1}, "Drain": {Drain: -1}, "Stop": {Stop: -1},
	} {
		if err := l.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Limits{}).Validate(); err != nil {
		t.Error(err)
	}
	l := Limits{}.WithDefaults()
	if l != (Limits{30 * time.Minute, 30 * time.Minute, 15 * time.Minute, 30 * time.Minute, 5 * time.Second, 10 * time.Second}) {
		t.Errorf("defaults %+v", l)
	}
	if set := (Limits{1, 2, 3, 4, 5, 6}); set.WithDefaults() != set {
		t.Errorf("%+v", set.WithDefaults())
	}
}

// The interval of the checks is a quarter of the least limit, from 1 ms to 1 s.
func TestIntervalOfChecks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits Limits
		want   time.Duration
	}{
		{Limits{}, time.Second},
		{Limits{Prepare: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Compile: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Solve: 4 * time.Second}, 100 * time.Millisecond},
		{Limits{Finish: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Drain: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Stop: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Stop: time.Millisecond}, time.Millisecond},
	} {
		d, _ := newTestDog()
		if d.limits = tt.limits.WithDefaults(); d.interval() != tt.want {
			t.Errorf("%+v: interval %v, want %v", tt.limits, d.interval(), tt.want)
		}
	}
}

// A stage that exceeds its limit has hung, with its items; active counts all stages.
func TestHungStages(t *testing.T) {
	t.Parallel()
	d, drains := newTestDog()
	if d.Active() || d.Failure() != nil {
		t.Error("a stage without a begin")
	}
	a, b := d.Begin(t.Context(), "solve", time.Minute, subject(1), subject(2)), d.Begin(t.Context(), "write", time.Minute+1)
	if d.Check(time.Minute - 1); !d.Active() || d.Failure() != nil || a.Ctx.Err() != nil {
		t.Error("a stage hung before its limit")
	}
	d.Check(1)
	if hung := a.Wrap(context.Canceled); !errors.Is(hung, ErrHung) || !InCompany(hung) || *drains != 1 {
		t.Errorf("hung: %v", hung)
	}
	d.Check(1)
	if b.Ctx.Err() == nil || *drains != 1 || !errors.Is(b.Wrap(context.Canceled), ErrHung) || InCompany(b.Wrap(context.Canceled)) {
		t.Errorf("another stage: %v, %d drains", b.Ctx.Err(), *drains)
	}
	if !strings.Contains(d.Failure().Error(), "stage solve") {
		t.Errorf("the first is %v", d.Failure())
	}
	a.ignored, b.ignored = 0, -time.Hour
	if d.Check(d.limits.Stop - 1); isClosed(d.Stuck) {
		t.Error("stuck before the limit")
	}
	d.Check(1)
	if d.Check(time.Second); !isClosed(d.Stuck) {
		t.Error("not stuck")
	}
	a.End()
	if !d.Active() {
		t.Error("the stage without items has ended")
	}
	if b.End(); d.Active() {
		t.Error("an ended stage is active")
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLimitOfFirstStep: the limit of an unmeasured step grows with the tiles, and that of a measured one with its duration.
func TestLimitOfFirstStep(t *testing.T) {
	t.Parallel()
	l := Limits{Solve: time.Minute}
	for _, c := range []struct {
		tiles    int
		expected time.Duration
		want     time.Duration
	}{{4, 0, time.Minute}, {10, 0, 2 * time.Minute}, {352, 0, 36 * time.Minute}, {4, time.Minute, 100 * time.Minute}} {
		if got := l.FirstStep(1, c.tiles, c.expected); got != c.want {
			t.Errorf("%d tiles, expected %v: %v, want %v", c.tiles, c.expected, got, c.want)
		}
	}
}
