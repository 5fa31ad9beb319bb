package gpuworker

import (
	"errors"
	"fmt"
	"sync"

	"ddiff/internal/queue"
)

// refusalsToSay is the number of items in a row that could not be settled from which a worker says so: their leases expire, and others compute them
// again.
const refusalsToSay = 3

// unsettled counts items in a row whose outcomes or acknowledgements NATS has refused or not answered.
type unsettled struct {
	mu   sync.Mutex
	n    int
	last error
}

// note counts an item that was settled, or could not be.
func (u *unsettled) note(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		u.n = 0
	}
	for _, refusal := range []error{queue.ErrAccess, queue.ErrFull, queue.ErrUnavailable, queue.ErrNotReady, queue.ErrClosed} {
		if errors.Is(err, refusal) {
			u.n, u.last = u.n+1, err
			return
		}
	}
}

// reason is why a worker is of no use, or nil.
func (u *unsettled) reason() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n < refusalsToSay {
		return nil
	}
	return fmt.Errorf("NATS takes no outcome or acknowledgement, %d in a row: %w", u.n, u.last)
}
