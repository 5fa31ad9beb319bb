package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ddiff/coordinator/ledger"
	"ddiff/internal/lifecycle"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
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

// settleEvents enters an outcome, and all others that have arrived, into the ledger.
func (r *runner) settleEvents(e event) error {
	for {
		if e.err != nil {
			return fmt.Errorf("follow results: %w", e.err)
		}
		r.outcomes.next(e.result)
		r.settleEvent(e.result)
		r.outcomes.caught = r.outcomes.caught || r.outcomes.behind == 0
		select {
		case e = <-r.outcomes.events:
		default:
			return nil
		}
	}
}

// settleEvent enters one outcome into the ledger. It logs and skips outcomes that it cannot read.
func (r *runner) settleEvent(e queue.Result) {
	if e.ID == manifest.IDPreflight {
		if e.Round >= r.rec.Round {
			r.notePreflight(e.Payload)
		}
		return
	}
	if e.ID == manifest.IDFault {
		r.noteFault(e.Payload)
		return
	}
	var res item.Result
	if err := json.Unmarshal(e.Payload, &res); err != nil { // an [item.Event], or of a Run's worker the whole result
		r.log.Error("skipped an outcome that cannot be read", "item", e.ID, "reason", err)
		return
	}
	res.Item.ID = e.ID // an unreadable message has its identity in the header only
	r.ledger.Spend(e.ID, e.Round, res.Seconds)
	r.parts.NoteOutcome(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason, false)
	n := r.ledger.Settle(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason)
	if n == 0 {
		return
	}
	if r.outcomes.first(e.Seq) {
		r.s.cfg.Metrics.Settle(context.Background(), string(res.Outcome), n)
	}
	now := r.s.cfg.Now()
	r.pace.add(now, now.Add(-e.Age), n) // the worker's clock may be another one
	r.progress = now
	if res.Outcome != item.OutcomeDone {
		r.log.Warn("item was not restored", "item", e.ID, "outcome", res.Outcome, "reason", res.Reason)
	}
	r.watcher.itemSettled(res, false)
}
