package gpuworker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ddiff/queue"
)

// held are the leases that the worker holds in all its stages. They are extended together,
// and only while something moves: when a chunk of steps is made, and in between as long as
// some stage is under way that has not taken longer than it may. A worker that hangs loses
// them all.
//
// A stage other than the solver may take limit. A chunk of steps may take four times as long
// as the longest one before it in its batch, or as a lease, if that is longer; the first
// chunk of a batch, with which a provider may still prepare itself, may take limit.
type held struct {
	every time.Duration // the pause between two extensions
	limit time.Duration
	now   func() time.Time
	log   *slog.Logger

	mu     sync.Mutex
	leases map[*queue.Lease]bool
	back   []*task // to be given back to the queue
	last   time.Time
	stages map[*time.Time]bool // the times until which they may take
}

// extendTimeout bounds one extension of all leases.
const extendTimeout = 5 * time.Second

func newHeld(every, limit time.Duration, now func() time.Time, log *slog.Logger) *held {
	return &held{
		every: every, limit: limit, now: now, log: log,
		leases: map[*queue.Lease]bool{}, stages: map[*time.Time]bool{},
	}
}

func (h *held) add(l *queue.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[l] = true
}

func (h *held) remove(l *queue.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, l)
}

// count is the number of items that are not settled.
func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leases)
}

// keep remembers an item that is to be given back. Its lease is extended until then.
func (h *held) keep(t *task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.back = append(h.back, t)
}

// kept hands the remembered items out, once.
func (h *held) kept() []*task {
	h.mu.Lock()
	defer h.mu.Unlock()
	back := h.back
	h.back = nil
	return back
}

// begin says that a stage is under way which may take some time, and gives what says that it
// has ended.
func (h *held) begin(limit time.Duration) (end func()) {
	until := h.now().Add(limit)
	h.mu.Lock()
	h.stages[&until] = true
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.stages, &until)
	}
}

// moving tells whether a stage is under way that has not taken too long.
func (h *held) moving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for until := range h.stages {
		if now.Before(*until) {
			return true
		}
	}
	return false
}

// guard extends the leases while something moves, until ctx ends.
func (h *held) guard(ctx context.Context) error {
	tick := time.NewTicker(max(h.every/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if h.moving() {
			h.beat(ctx)
		}
	}
}

// beat extends all leases if the last time was long enough ago. One that cannot be extended
// is worth a warning; the work goes on, since a result that comes too late does no harm.
func (h *held) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), extendTimeout)
	defer cancel()
	var failed error
	for _, l := range h.due() {
		if err := l.Extend(ctx); err != nil {
			failed = err
		}
	}
	if failed != nil {
		h.log.Warn("could not extend a lease", "reason", failed)
	}
}

// due are the leases that are to be extended now.
func (h *held) due() []*queue.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if now.Sub(h.last) < h.every {
		return nil
	}
	h.last = now
	leases := make([]*queue.Lease, 0, len(h.leases))
	for l := range h.leases {
		leases = append(leases, l)
	}
	return leases
}
