package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ddiff/manifest"
)

// peersAge is how long a count of workers is used.
const peersAge = 10 * time.Second

// keyBoard lists records.
type keyBoard interface {
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Peers counts the workers on a board by their heartbeats. Killed workers count until a coordinator removes their
// records. Workers may share a Peers.
type Peers struct {
	Board keyBoard

	mu      sync.Mutex
	counted time.Time
	n       int
}

// Others returns the number of other workers, at most ten seconds old.
func (p *Peers) Others(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.counted) >= peersAge {
		keys, err := p.Board.Keys(ctx, manifest.KeyWorkerPrefix)
		if err != nil {
			return 0, fmt.Errorf("count workers: %w", err)
		}
		p.counted, p.n = time.Now(), len(keys)
	}
	return max(p.n-1, 0), nil
}
