package gpuworker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/retry"
)

// extendTimeout bounds one extension of all leases.
const extendTimeout = 5 * time.Second

// leaseSet holds the unsettled items of a worker. It extends their leases together, while a stage runs. The watchdog ends
// a stage that hangs; then the leases are settled, or expire.
type leaseSet struct {
	interval time.Duration // between extensions
	log      *slog.Logger

	mu    sync.Mutex
	tasks map[*task]bool
}

func newLeaseSet(cfg Config) *leaseSet {
	return &leaseSet{interval: cfg.AckWait / 3, log: cfg.Logger, tasks: map[*task]bool{}}
}

func (s *leaseSet) add(tasks []*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		s.tasks[t] = true
	}
}

func (s *leaseSet) remove(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks, t)
}

// count returns the number of unsettled items.
func (s *leaseSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks)
}

// unsettled returns the unsettled items.
func (s *leaseSet) unsettled() []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.tasks))
}

// run extends the leases while active, until ctx ends. It does not wait for the solver: a slow network delays extensions,
// not steps, and a step may take longer than a lease.
func (s *leaseSet) run(ctx context.Context, active func() bool) error {
	failing := false
	for {
		pause := s.interval
		if active() {
			err := s.extend(ctx)
			if err != nil {
				pause /= 4
			}
			if err != nil && !failing { // a log line for each outage, not for each attempt
				s.log.Warn("could not extend the leases", "reason", err)
			}
			failing = err != nil
		}
		if err := retry.Sleep(ctx, max(pause, time.Millisecond)); err != nil {
			return err
		}
	}
}

// extend extends all leases. A failure does no harm: a result may come after the end of its lease.
func (s *leaseSet) extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, extendTimeout)
	defer cancel()
	var leases []*queue.Lease
	for _, t := range s.unsettled() {
		leases = append(leases, t.lease)
	}
	return queue.Extend(ctx, leases...)
}
