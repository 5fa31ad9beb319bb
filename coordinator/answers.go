package coordinator

import (
	"context"
	"sync"
	"time"
)

// remembered is how long an answer stays: longer than the door that has asked takes to ask again.
const remembered = time.Minute

// answers has the verbs that are being executed, and the answers of those that have ended, because a door asks again with the same key. A verb that
// failed through no fault of who asks, as when the store did not answer, has no answer to stay: who asks again has it executed again.
type answers struct {
	mu    sync.Mutex
	byKey map[string]*given
}

type given struct {
	done  chan struct{} // closed at its end
	data  []byte        // nil: the next leader answers
	ended time.Time
}

// get executes a verb once for each key, and returns its answer, or nil once ctx ends. execute says whether its answer stays.
func (a *answers) get(ctx context.Context, key string, now func() time.Time, execute func() (data []byte, stays bool)) []byte {
	a.mu.Lock()
	for k, g := range a.byKey {
		if !g.ended.IsZero() && now().Sub(g.ended) > remembered {
			delete(a.byKey, k)
		}
	}
	g := a.byKey[key]
	if g == nil {
		if a.byKey == nil {
			a.byKey = map[string]*given{}
		}
		g = &given{done: make(chan struct{})}
		a.byKey[key] = g
		go func() {
			data, stays := execute()
			a.mu.Lock()
			defer a.mu.Unlock()
			if g.data, g.ended = data, now(); !stays {
				delete(a.byKey, key)
			}
			close(g.done)
		}()
	}
	a.mu.Unlock()
	select {
	case <-g.done:
		return g.data
	case <-ctx.Done():
		return nil
	}
}
