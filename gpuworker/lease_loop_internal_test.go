package gpuworker

import (
	"context"
	"errors"
	"testing"
	"time"

	"ddiff/internal/queue"
)

// countedWork is a dispatcher without work whose calls take a second. It drains the worker at the tenth call.
type countedWork struct {
	clock *stoppedClock
	drain func()
	err   error
	calls int
}

func (c *countedWork) Next(context.Context, time.Duration) (Assignment, []*queue.Lease, error) {
	c.clock.time = c.clock.time.Add(time.Second)
	if c.calls++; c.calls == 10 {
		c.drain()
	}
	return Assignment{}, nil, c.err
}

// A worker ends once it has had no work for Config.Once, if that is set, or with an error of the queue.
func TestEndOfLeases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		once  time.Duration
		held  bool
		err   error
		calls int
	}{
		"no end":           {0, false, nil, 10},
		"three seconds":    {3 * time.Second, false, nil, 3},
		"beside an item":   {3 * time.Second, true, nil, 10},
		"queue is closed":  {0, false, queue.ErrClosed, 1},
		"queue is not yet": {0, false, queue.ErrNotReady, 10},
	} {
		clock := newStoppedClock()
		ctx, drain := context.WithCancel(t.Context())
		work := &countedWork{clock: clock, drain: drain, err: tt.err}
		w := quietWorker(t, func(c *Config) { c.Work, c.Now, c.Once, c.Idle = work, clock.now, tt.once, time.Millisecond })
		if tt.held {
			w.leases.add([]*task{{lease: &queue.Lease{}}})
		}
		err := w.lease(ctx, nil)
		drain()
		if ends := errors.Is(tt.err, queue.ErrClosed); work.calls != tt.calls || (err != nil) != ends || ends && !errors.Is(err, tt.err) {
			t.Errorf("%s: %d calls, %v", name, work.calls, err)
		}
	}
}

// oneLease is a dispatcher of one lease.
type oneLease struct{ leases []*queue.Lease }

func (o oneLease) Next(context.Context, time.Duration) (Assignment, []*queue.Lease, error) {
	return Assignment{Campaign: "a"}, o.leases, nil
}

// An item that cannot be settled ends the worker.
func TestLeaseThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	leases := leaseNew(t, q, 1)
	must(t, leases[0].Ack(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w := quietWorker(t, func(c *Config) { c.Work = oneLease{leases} })
	w.restorer = refusing{}
	if err := w.lease(ctx, nil); err == nil || ctx.Err() != nil {
		t.Errorf("error %v", err)
	}
}

// refusing is a restorer that cannot load any item.
type refusing struct{ restorer }
