package gpuworker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ddiff/queue"
)

// extendTimeout bounds one extension of all leases.
const extendTimeout = 5 * time.Second

// leaseSet holds the leases of all unsettled items of a worker. It extends them together, and only while the worker
// makes progress: after each chunk of solver steps, and while a stage runs that is within its time limit. The leases of
// a worker that hangs expire.
//
// The limit of a stage is Config.StageLimit. The limit of a chunk of solver steps is four times the longest earlier
// chunk of the batch, at least AckWait. The first chunk of a batch, in which a provider may still initialize, has
// StageLimit.
type leaseSet struct {
	interval time.Duration // between extensions
	now      func() time.Time
	log      *slog.Logger

	mu        sync.Mutex
	leases    map[*queue.Lease]bool
	released  []*task
	extended  time.Time           // last extension
	deadlines map[*time.Time]bool // of the running stages
}

func newLeaseSet(interval time.Duration, now func() time.Time, log *slog.Logger) *leaseSet {
	return &leaseSet{
		interval: interval, now: now, log: log, leases: map[*queue.Lease]bool{}, deadlines: map[*time.Time]bool{},
	}
}

func (s *leaseSet) add(l *queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[l] = true
}

func (s *leaseSet) remove(l *queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, l)
}

// count returns the number of unsettled items.
func (s *leaseSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

// release marks an item for release at the end of Run. Its lease is extended until then.
func (s *leaseSet) release(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, t)
}

// takeReleased returns the items marked by release, and clears the marks.
func (s *leaseSet) takeReleased() []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := s.released
	s.released = nil
	return tasks
}

// track registers a stage with a time limit. The caller calls end after the stage.
func (s *leaseSet) track(limit time.Duration) (end func()) {
	deadline := s.now().Add(limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadlines[&deadline] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.deadlines, &deadline)
	}
}

// active reports whether a stage runs that is within its time limit.
func (s *leaseSet) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for deadline := range s.deadlines {
		if now.Before(*deadline) {
			return true
		}
	}
	return false
}

// run extends the leases while a stage is active, until ctx ends.
func (s *leaseSet) run(ctx context.Context) error {
	tick := time.NewTicker(max(s.interval/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if s.active() {
			s.extend(ctx)
		}
	}
}

// extend extends all leases when the interval has passed. A failure is logged only: a result that comes after the end
// of its lease does no harm.
func (s *leaseSet) extend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), extendTimeout)
	defer cancel()
	if err := queue.Extend(ctx, s.due()...); err != nil {
		s.log.Warn("could not extend the leases", "reason", err)
	}
}

// due returns all leases when the interval has passed since the last extension.
func (s *leaseSet) due() []*queue.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.extended) < s.interval {
		return nil
	}
	s.extended = now
	leases := make([]*queue.Lease, 0, len(s.leases))
	for l := range s.leases {
		leases = append(leases, l)
	}
	return leases
}
