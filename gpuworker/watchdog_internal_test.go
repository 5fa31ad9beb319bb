package gpuworker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// A slow machine is not a hung one: the limits of chunks follow the measured durations.
func TestLimitsFollowMeasurements(t *testing.T) {
	t.Parallel()
	l := Limits{Solve: time.Minute}.WithDefaults()
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"first chunk of a new workload", l.firstChunk(1, 0), time.Minute},
		{"of a batch", l.firstChunk(4, 0), 4 * time.Minute},
		{"of a large batch", l.firstChunk(64, 0), 8 * time.Minute},
		{"of a measured workload", l.firstChunk(1, 10*time.Second), 200 * time.Second},
		{"chunk after a short one", l.nextChunk(time.Millisecond), 6 * time.Second},
		{"chunk after a long one", l.nextChunk(time.Hour), 20 * time.Hour},
	} {
		if c.got != c.want {
			t.Errorf("%s: the limit is %v, want %v", c.name, c.got, c.want)
		}
	}
}

func newTestDog() (*watchdog, *int) {
	d := newWatchdog(Limits{}.WithDefaults(), time.Now, slog.New(slog.DiscardHandler))
	drains := 0
	d.drain = func() { drains++ }
	return d, &drains
}

// Each chunk has the whole limit; the stage that exceeds it is interrupted once, and stuck when it does not return.
func TestWatchdogInterruptsStage(t *testing.T) {
	t.Parallel()
	d, drains := newTestDog()
	a, other := d.begin(t.Context(), "solve", time.Minute), d.begin(t.Context(), "write", time.Hour)
	defer other.end()
	for range 5 {
		d.check(59 * time.Second)
		a.next("solve", time.Minute, true)
	}
	if a.ctx.Err() != nil || d.failure() != nil {
		t.Fatalf("a stage within its limit was interrupted: %v", d.failure())
	}
	d.check(time.Minute)
	d.check(time.Second)
	if a.ctx.Err() == nil || other.ctx.Err() != nil || *drains != 1 {
		t.Errorf("%v, %v, %d drains", a.ctx.Err(), other.ctx.Err(), *drains)
	}
	if err := d.failure(); err == nil || err.Error() != "the worker hung: stage solve took 1m0s, its limit is 1m0s" {
		t.Errorf("failure %v", err)
	}
	if err := a.wrap(context.Canceled); err == nil || err.Error() != d.failure().Error() {
		t.Errorf("the stage ended with %v", err)
	}
	select {
	case <-d.stuck:
		t.Error("the stage is stuck after a second")
	default:
	}
	d.check(d.limits.Stop)
	<-d.stuck
	a.end()
	if a.wrap(nil) != nil {
		t.Error("a stage that succeeded has an error")
	}
}

// A cancelled campaign and a draining worker interrupt the solver, but no other stage.
func TestWatchdogWaitsForOtherStages(t *testing.T) {
	t.Parallel()
	d, _ := newTestDog()
	ctx, cancel := context.WithCancel(t.Context())
	solve, write := d.begin(ctx, "solve", time.Hour), d.begin(ctx, "write", time.Hour)
	solve.next("solve", time.Hour, true)
	d.setDraining()
	d.check(d.limits.Drain)
	if solve.ctx.Err() == nil || write.ctx.Err() != nil {
		t.Errorf("after the time to drain: %v, %v", solve.ctx.Err(), write.ctx.Err())
	}
	solve.end()
	cancel()
	for range 3 {
		d.check(d.limits.Stop)
	}
	if d.failure() != nil {
		t.Errorf("a stage that cannot be interrupted: %v", d.failure())
	}
	write.end()

	stuck := d.begin(ctx, "solve", time.Hour)
	stuck.next("solve", time.Hour, true)
	d.check(d.limits.Stop)
	<-d.stuck
	if err := d.failure(); err == nil || err.Error() != "the worker hung: stage solve did not end within 10s after its interruption" {
		t.Errorf("failure %v", err)
	}
	if n := len(d.hung()); n != 0 {
		t.Errorf("%d attempts count for an interrupted stage", n)
	}
	stuck.end()
}

// The clock jumps by hours while the process is suspended: nothing has hung.
func TestSuspensionDoesNotCount(t *testing.T) {
	t.Parallel()
	now, calls := time.Now(), make(chan time.Time)
	d, drains := newTestDog()
	d.limits.Drain = 8 * time.Millisecond // the interval of the checks is a quarter
	d.now = func() time.Time { return <-calls }
	a := d.begin(t.Context(), "solve", time.Minute)
	defer a.end()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
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
	if a.ctx.Err() != nil || *drains != 0 || a.spent == 0 || a.spent > 100*time.Millisecond {
		t.Errorf("the stage counts %v, %v", a.spent, d.failure())
	}
}
