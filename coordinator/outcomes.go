package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// event is an outcome from the result stream, or the error that ended the stream.
type event struct {
	result queue.Result
	err    error
}

// follower delivers the outcomes of a campaign from the result stream, and knows how far the ledger has them.
type follower struct {
	events  <-chan event
	service *lifecycle.Service // fills events
	since   time.Time          // when it began to read
	seen    uint64             // sequence number of the last outcome in the ledger
	behind  int                // outcomes that followed it in the stream, when it was read
	caught  bool               // the ledger has had all outcomes of the stream since then
	// counted is the sequence number of the last outcome in ddiff.ledger.items, or before the runner began, if counts is set.
	counted uint64
	counts  bool
}

// start delivers the outcomes after the last one that was seen to events, until ctx ends or stop.
func (f *follower) start(ctx context.Context, q *queue.Queue, now time.Time) {
	f.stop()
	events := make(chan event, 32) // every waiting campaign has one: 3 KiB
	f.events, f.caught, f.since = events, false, now
	after := f.seen
	f.service = lifecycle.Go(ctx, func(ctx context.Context) error {
		for res, err := range q.Results(ctx, after) {
			select {
			case events <- event{res, err}:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// stop ends the delivery.
func (f *follower) stop() { f.service.Stop() }

// next notes an outcome that is about to enter the ledger.
func (f *follower) next(e queue.Result) {
	f.seen, f.behind = e.Seq, int(e.Behind)
}

// first reports whether an outcome is new in ddiff.ledger.items, and counts it.
func (f *follower) first(seq uint64) bool {
	if seq <= f.counted {
		return false
	}
	f.counted = seq
	return true
}

// lag returns the number of outcomes that are not in the ledger.
func (f *follower) lag() int { return max(f.behind, len(f.events)) }

// outcomes has the state of a campaign's items: the ledger, and what enters it.
type outcomes struct {
	follower
	ledger   *ledger.Ledger // of the items of the windows
	parts    *ledger.Parts  // of the ledger in the store; nil for a Run
	pace     pace
	progress time.Time // of the last outcome, or of the start
	watcher  watcher
	now      func() time.Time
	log      *slog.Logger
	metrics  *telemetry.Cluster
}

// reset empties the ledger.
func (o *outcomes) reset() {
	o.ledger, o.pace, o.progress, o.seen = ledger.New(), pace{}, o.now(), 0
}

// count adds the items of a window to the ledger.
func (o *outcomes) count(w *shard.Window) (fresh, repeated []item.Item) {
	for _, it := range w.Items {
		if o.ledger.Add(it.ID) {
			fresh = append(fresh, it)
		} else {
			repeated = append(repeated, it)
		}
	}
	for _, f := range w.Failed {
		o.ledger.Add(f.Item.ID)
		o.ledger.Settle(f.Item.ID, 0, ledger.Failed, f.Reason)
	}
	return fresh, repeated
}

// enter enters one outcome into the ledger. It logs and skips outcomes that it cannot read.
func (o *outcomes) enter(e queue.Result) {
	var res item.Result
	if err := json.Unmarshal(e.Payload, &res); err != nil { // an [item.Event], or of a Run's worker the whole result
		o.log.Error("skipped an outcome that cannot be read", "item", e.ID, "reason", err)
		return
	}
	now := o.now()
	at := now.Add(-e.Age) // the worker's clock may be another one
	res.Item.ID = e.ID    // an unreadable message has its identity in the header only
	o.ledger.Spend(e.ID, e.Round, record.Use{Month: record.MonthOf(at), Pool: res.Pool, Seconds: res.Seconds})
	o.parts.NoteOutcome(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason, false)
	n := o.ledger.Settle(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason)
	if n == 0 {
		return
	}
	if o.first(e.Seq) {
		o.metrics.Settle(context.Background(), string(res.Outcome), n)
	}
	o.pace.add(now, at, n)
	o.progress = now
	if res.Outcome != item.OutcomeDone {
		o.log.Warn("item was not restored", "item", e.ID, "outcome", res.Outcome, "reason", res.Reason)
	}
	o.watcher.itemSettled(res, false)
}

// settleStored settles the pending items of a campaign that have a result in storage. A result that cannot be read fails its item; it
// is not overwritten. The device-seconds of a result that this campaign made count, in the month in which it was stored: the worker's clock may be
// another one.
func (o *outcomes) settleStored(ctx context.Context, from *results, items []item.Item, c *record.Campaign) error {
	for chunk := range slices.Chunk(items, loadChunk) {
		found, err := from.load(ctx, chunk, func(it *item.Item) bool { return o.ledger.State(it.ID) == ledger.Pending })
		if err == nil {
			err = from.date(ctx, found, c.ID)
		}
		if err != nil {
			return err
		}
		for _, s := range found {
			if !s.found {
				continue
			}
			res := s.result
			if s.damage != nil {
				res = from.failed(res.Item, s.damage.Error())
				o.log.Error("stored result cannot be read", "item", res.Item.Name, "reason", s.damage)
			}
			if s.campaign == c.ID && !s.modified.Before(c.Submitted.Add(-clockSkew)) && !o.ledger.WasMissing(res.Item.ID) {
				o.ledger.Spend(res.Item.ID, c.Round, record.Use{Month: record.MonthOf(s.modified), Pool: res.Pool, Seconds: res.Seconds})
			}
			if o.ledger.Settle(res.Item.ID, c.Round, ledger.StateOf(res.Outcome), res.Reason) == 0 {
				continue
			}
			o.parts.NoteOutcome(res.Item.ID, c.Round, ledger.StateOf(res.Outcome), res.Reason, true)
			o.ledger.MarkFound(res.Item.ID)
			o.watcher.itemSettled(res, s.damage == nil)
		}
	}
	return nil
}

// enterEvents enters an outcome, and all others that have arrived, into the ledger.
func (r *runner) enterEvents(e event) error {
	for {
		if e.err != nil {
			return fmt.Errorf("follow results: %w", e.err)
		}
		r.outcomes.next(e.result)
		switch e.result.ID {
		case record.IDPreflight:
			if e.result.Round >= r.rec.Round {
				r.notePreflight(e.result.Payload)
			}
		case record.IDFault:
			r.noteFault(e.result.Payload)
		default:
			r.outcomes.enter(e.result)
		}
		r.outcomes.caught = r.outcomes.caught || r.outcomes.behind == 0
		select {
		case e = <-r.outcomes.events:
		default:
			return nil
		}
	}
}
