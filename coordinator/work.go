package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// work is the queue of a campaign's work.
type work struct {
	*queue.Queue // nil until it is opened
	metrics      *telemetry.Cluster
	paused       bool      // the queue delivers nothing
	stalled      time.Time // since when it holds too few items
	unchecked    int       // ticks since the last check, while the campaign waits
}

// pause pauses or resumes the queue.
func (q *work) pause(ctx context.Context, paused bool) error {
	change, verb := q.Resume, "resume"
	if paused {
		change, verb = q.Pause, "pause"
	}
	if err := change(ctx); err != nil {
		return fmt.Errorf("%s campaign: %w", verb, err)
	}
	q.paused = paused
	return nil
}

// drop drops all items.
func (q *work) drop(ctx context.Context) error {
	if err := q.Drop(ctx); err != nil {
		return fmt.Errorf("drop work: %w", err)
	}
	return nil
}

// The queue of a campaign that waits for workers or for a person is checked every quietTicks ticks, or less often where there are so many
// campaigns that a tick would have more than tickChecks checks: a thousand waiting campaigns would otherwise cost a thousand requests a second.
const quietTicks, tickChecks = 5, 100

// quiet reports whether a tick needs no check: the campaign, one of so many, waits, and the last check was a few ticks ago.
func (q *work) quiet(waits bool, campaigns int) bool {
	if !waits || !q.stalled.IsZero() {
		q.unchecked = 0
		return false
	}
	q.unchecked = (q.unchecked + 1) % max(quietTicks, campaigns/tickChecks)
	return q.unchecked != 0
}

// lacks returns for how long the queue, which holds so many items, has held fewer than expected.
func (q *work) lacks(held, expected int, now time.Time) time.Duration {
	if held >= expected {
		q.stalled = time.Time{}
		return 0
	}
	if q.stalled.IsZero() {
		q.stalled = now
	}
	return now.Sub(q.stalled)
}

// publish publishes the pending items in a round, and returns their number. Of several items with one identity it publishes one. Items
// that the queue has already are not an error.
func (q *work) publish(ctx context.Context, items []item.Item, pending func(id string) bool, round int) (int, error) {
	var all []queue.Work
	chosen := map[string]bool{}
	for _, it := range items {
		if chosen[it.ID] || !pending(it.ID) {
			continue
		}
		chosen[it.ID] = true
		data, err := json.Marshal(it)
		if err != nil {
			return 0, fmt.Errorf("publish item %s: %w", it.Name, err)
		}
		all = append(all, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: manifest.EncodeItem(data), Round: round})
	}
	return len(all), q.send(ctx, all)
}

// send publishes work. Duplicates are not an error.
func (q *work) send(ctx context.Context, all []queue.Work) error {
	if len(all) == 0 {
		return nil
	}
	err := q.PublishBatch(ctx, all)
	var refused *queue.BatchError
	if !errors.As(err, &refused) {
		if err == nil {
			q.metrics.Publish(ctx, len(all))
		}
		return err
	}
	q.metrics.Publish(ctx, len(all)-len(refused.Refused))
	for _, f := range refused.Refused {
		if !errors.Is(f.Err, queue.ErrDuplicate) {
			return fmt.Errorf("publish %d items: %w", len(all), err)
		}
	}
	return nil
}
