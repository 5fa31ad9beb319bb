package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// work is the queue of a campaign's work.
type work struct {
	*queue.Queue // nil until it is opened
	metrics      *telemetry.Cluster
	paused       bool         // the queue delivers nothing
	stalled      time.Time    // since when it holds too few items
	unchecked    int          // ticks since the last check, while the campaign waits
	unsent       []queue.Work // items for which the queue had no room
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
	q.unsent = nil
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
		all = append(all, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: record.EncodeItem(data), Round: round})
	}
	q.unsent = slices.DeleteFunc(q.unsent, func(w queue.Work) bool { return chosen[w.ID] }) // of another round
	return len(all), q.send(ctx, all)
}

// sendRest publishes items for which there was no room, as many as fit now.
func (q *work) sendRest(ctx context.Context, pending func(id string) bool) error {
	const atOnce = 256
	rest := slices.DeleteFunc(q.unsent, func(w queue.Work) bool { return !pending(w.ID) })
	for q.unsent = nil; len(rest) > 0 && len(q.unsent) == 0; {
		n := min(len(rest), atOnce)
		if err := q.send(ctx, rest[:n:n]); err != nil {
			q.unsent = append(q.unsent, rest...)
			return err
		}
		rest = rest[n:]
	}
	q.unsent = append(q.unsent, rest...)
	return nil
}

// send publishes work. Duplicates are not an error, nor are items for which the queue has no room: they wait in unsent.
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
	full := map[string]bool{}
	for _, f := range refused.Refused {
		switch {
		case errors.Is(f.Err, queue.ErrFull):
			full[f.ID] = true
		case !errors.Is(f.Err, queue.ErrDuplicate):
			return fmt.Errorf("publish %d items: %w", len(all), err)
		}
	}
	for _, w := range all {
		if full[w.ID] {
			q.unsent = append(q.unsent, w)
		}
	}
	return nil
}
