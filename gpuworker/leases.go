package gpuworker

import (
	"context"
	"sync"
	"time"

	"ddiff/queue"
)

// held are the leases that the worker holds in all its stages. They are extended together,
// and only when the device makes progress: one that hangs loses them all.
type held struct {
	mu     sync.Mutex
	leases map[*queue.Lease]bool
	back   []*task // to be given back to the queue
	every  time.Duration
	now    func() time.Time
	last   time.Time
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

// keep remembers an item that is to be given back.
func (h *held) keep(t *task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, t.lease)
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

// beat extends all leases if the last time was long enough ago. An error is that of the last
// lease that could not be extended; the work goes on, since a result that comes too late
// does no harm.
func (h *held) beat(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); now.Sub(h.last) >= h.every {
		h.last = now
	} else {
		return nil
	}
	var last error
	for l := range h.leases {
		if err := l.Extend(ctx); err != nil {
			last = err
		}
	}
	return last
}
