package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/coordinator/ledger"
	"ddiff/internal/lifecycle"
	"ddiff/manifest"
	"ddiff/queue"
)

// event is an outcome from the result stream, or the error that ended the stream.
type event struct {
	result queue.Result
	err    error
}

// follow delivers the outcomes that the ledger does not have to r.events until ctx ends.
func (r *runner) follow(ctx context.Context) {
	r.follower.Stop()
	events := make(chan event, 256)
	r.events = events
	q, after := r.queue, r.seen
	r.caught, r.followed = false, r.s.cfg.Now()
	r.follower = lifecycle.Go(ctx, func(ctx context.Context) error {
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

// settleEvents enters an outcome, and all others that have arrived, into the ledger.
func (r *runner) settleEvents(e event) error {
	for {
		if e.err != nil {
			return errors.Join(fmt.Errorf("follow results: %w", e.err), r.announceCopies())
		}
		r.seen, r.behind = e.result.Seq, int(e.result.Behind)
		if err := r.settleEvent(e.result); err != nil {
			return err
		}
		r.caught = r.caught || r.behind == 0
		select {
		case e = <-r.events:
		default:
			return r.announceCopies()
		}
	}
}

// settleEvent enters one outcome into the ledger. It logs and skips outcomes that it cannot read.
func (r *runner) settleEvent(e queue.Result) error {
	if e.ID == manifest.IDPreflight {
		if e.Round >= r.rec.Round {
			r.settlePreflight(e.Payload)
		}
		return nil
	}
	if e.ID == manifest.IDFault {
		r.noteFault(e.Payload)
		return nil
	}
	var res manifest.Result
	if err := r.decodeOutcome(e.Payload, &res); err != nil {
		r.log.Error("skipped an outcome that cannot be read", "item", e.ID, "reason", err)
		return nil
	}
	res.Item.ID = e.ID // an unreadable message has its identity in the header only
	r.parts.NoteOutcome(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason, false)
	n := r.ledger.Settle(e.ID, e.Round, ledger.StateOf(res.Outcome), res.Reason)
	if n == 0 {
		return nil
	}
	if e.Seq > r.counted {
		r.counted = e.Seq
		r.s.cfg.Metrics.Settle(context.Background(), string(res.Outcome), n)
	}
	r.pace.add(r.s.cfg.Now(), res.Finished, n)
	r.progress = r.s.cfg.Now()
	if res.Outcome != manifest.OutcomeDone {
		r.log.Warn("item was not restored", "item", e.ID, "outcome", res.Outcome, "reason", res.Reason)
	}
	return r.announce(res, false)
}

// decodeOutcome reads the payload of a result event. Only a Run gets and needs more than the outcome itself.
func (r *runner) decodeOutcome(payload []byte, res *manifest.Result) error {
	if r.s.cfg.run != nil {
		return json.Unmarshal(payload, res)
	}
	var outcome manifest.Event
	err := json.Unmarshal(payload, &outcome)
	res.Outcome, res.Reason, res.Finished = outcome.Outcome, outcome.Reason, outcome.Finished
	return err
}
