package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// memoryAge is how long an answer of the board is used again. A page reads its lists a second after an event, so that it never has an older one.
const memoryAge = 500 * time.Millisecond

// memory has the last lists of the board, because every open page reads them each second: one page reads, and the others wait for its answer.
// A write of this coordinator empties it.
type memory struct {
	reading *semaphore.Weighted // protects lists
	writes  atomic.Int64
	lists   map[string]remembered // by the prefix of the keys
}

func newMemory() *memory {
	return &memory{reading: semaphore.NewWeighted(1), lists: map[string]remembered{}}
}

// remembered is a list of the board. Callers do not change it.
type remembered struct {
	read    time.Time
	writes  int64 // before it was read
	value   any
	skipped []error
}

// recall returns the list of a prefix, of the memory if it is new enough, else by read.
func recall[T any](ctx context.Context, m *memory, prefix string, read func() (T, []error, error)) (value T, skipped []error, err error) {
	if err := m.reading.Acquire(ctx, 1); err != nil {
		return value, nil, err
	}
	defer m.reading.Release(1)
	now, writes := time.Now(), m.writes.Load()
	known := m.lists[prefix]
	if value, ok := known.value.(T); ok && known.writes == writes && now.Sub(known.read) < memoryAge {
		return value, known.skipped, nil
	}
	if value, skipped, err = read(); err == nil {
		m.lists[prefix] = remembered{now, writes, value, skipped}
	}
	return value, skipped, err
}

// wrote makes the lists old after a write.
func (m *memory) wrote() { m.writes.Add(1) }

// campaigns lists the campaigns of the board in the order of their submission, without secrets, and why records are missing.
func (c *Cluster) campaigns(ctx context.Context) (all []record.CampaignStatus, skipped []error, err error) {
	return recall(ctx, c.memory, record.KeyCampaignPrefix, func() ([]record.CampaignStatus, []error, error) {
		found, err := c.onBoard.Read(ctx)
		if err != nil {
			return nil, nil, err
		}
		statuses, err := c.statuses.Read(ctx)
		if err != nil {
			return nil, nil, err
		}
		all, skipped := board.Join(found, statuses)
		for _, s := range all {
			public(s.Campaign)
		}
		return all, skipped, nil
	})
}

func (c *Cluster) records(ctx context.Context, prefix string) (map[string]queue.Change, error) {
	found, _, err := recall(ctx, c.memory, prefix, func() (map[string]queue.Change, []error, error) {
		found, err := board.Records(ctx, c.cfg.Board, prefix)
		return found, nil, err
	})
	return found, err
}
