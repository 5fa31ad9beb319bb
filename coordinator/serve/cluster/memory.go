package cluster

import (
	"context"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// memoryAge is how long an answer of the board is used again. A page reads its lists a second after an event, so that it never has an older one.
const memoryAge = 500 * time.Millisecond

// memory has the last lists of the board, because every open page reads them each second. A write of this coordinator empties it.
type memory struct {
	mu     sync.Mutex
	writes int
	lists  map[string]remembered // by the prefix of the keys
}

// remembered is a list of the board. Callers do not change it.
type remembered struct {
	read    time.Time
	value   any
	skipped []error
}

// recall returns the list of a prefix, of the memory if it is new enough, else by read.
func recall[T any](m *memory, prefix string, read func() (T, []error, error)) (value T, skipped []error, err error) {
	m.mu.Lock()
	known, writes := m.lists[prefix], m.writes
	m.mu.Unlock()
	now := time.Now()
	if value, ok := known.value.(T); ok && now.Sub(known.read) < memoryAge {
		return value, known.skipped, nil
	}
	if value, skipped, err = read(); err != nil {
		return value, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writes == writes {
		m.lists[prefix] = remembered{now, value, skipped}
	}
	return value, skipped, nil
}

// wrote empties the memory after a write.
func (m *memory) wrote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	clear(m.lists)
}

// campaigns lists the campaigns of the board in the order of their submission, without secrets, and why records are missing.
func (c *Cluster) campaigns(ctx context.Context) (all []manifest.CampaignStatus, skipped []error, err error) {
	return recall(&c.memory, manifest.KeyCampaignPrefix, func() ([]manifest.CampaignStatus, []error, error) {
		all, skipped, err := board.Campaigns(ctx, c.cfg.Board)
		for _, s := range all {
			public(s.Campaign)
		}
		return all, skipped, err
	})
}

// records returns the records with a prefix.
func (c *Cluster) records(ctx context.Context, prefix string) (map[string]queue.Change, error) {
	found, _, err := recall(&c.memory, prefix, func() (map[string]queue.Change, []error, error) {
		found, err := board.Records(ctx, c.cfg.Board, prefix)
		return found, nil, err
	})
	return found, err
}
