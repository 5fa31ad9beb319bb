package queue

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// Mirror is a copy of records in memory, for a process that lists thousands of them again and again. Its methods may be called concurrently.
type Mirror struct {
	board  *Board
	prefix string

	mu      sync.Mutex
	w       *watcher // nil before the first read
	records map[string]Change
}

// Mirror returns a mirror of the records with a prefix, see Keys. It reads nothing yet.
func (b *Board) Mirror(prefix string) *Mirror {
	return &Mirror{board: b, prefix: prefix, records: map[string]Change{}}
}

// Read returns all records by key as they are on the board now. It asks for the newest record and for those that have changed since
// the last call.
func (m *Mirror) Read(ctx context.Context) (map[string]Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		connection := m.board.nc.Stats().Reconnects
		if err := m.update(ctx); err != nil {
			return nil, fmt.Errorf("list records %s: %w", m.prefix, err)
		}
		if m.board.nc.Stats().Reconnects == connection { // otherwise the update may have stopped midway
			return maps.Clone(m.records), nil
		}
	}
}

// update reads what has changed.
func (m *Mirror) update(ctx context.Context) (err error) {
	if m.w == nil {
		if m.w, err = m.board.watcher(m.prefix); err != nil {
			return err
		}
	}
	_, err = m.w.readChanges(ctx, func(c Change) bool {
		if m.records[c.Key] = c; c.Deleted {
			delete(m.records, c.Key)
		}
		return true
	})
	return err
}
