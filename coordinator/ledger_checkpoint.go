package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/storage"
)

// checkpoint is the part of the ledger that storage does not have yet. The ledger is stored in parts that are created
// once: parts of outcomes, each with the outcomes since the part before it, and parts of windows, each with the
// identities of some windows. A new leader reads them instead of the windows and the history of the result stream.
//
// The result stream loses the outcomes of a part when the next part is stored, so that a damaged newest part can be
// replaced, unless the stream is nearly full. Outcomes of an older damaged part are lost: stored results settle their items, and failed and dead items run
// again. Parts may overlap, for example after a second leader: entering an outcome twice has no effect.
type checkpoint struct {
	outcomes []partEntry
	since    time.Time // when the first of outcomes was added
	found    bool      // outcomes has results found in storage, which the result stream does not have
	next     int       // number of the next part of outcomes
	stream   int64     // identity of the result stream
	stored   uint64    // sequence number of the last outcome of the newest part
	emptied  uint64    // the result stream has no outcomes up to this number
	relieved time.Time // when foldAll was called for a result stream that was nearly full
	windows  []notedWindow
}

// notedWindow has the entries of a window.
type notedWindow struct {
	partWindow
	entries []partEntry
}

const (
	// foldWindows is the number of windows of a part.
	foldWindows = 16
	// foldInterval is the time after which a part may have fewer outcomes than Config.Fold.
	foldInterval = time.Hour
	// foldAtExit is the smallest number of outcomes that a leader stores at its end, exitTimeout the limit for it.
	foldAtExit  = 1000
	exitTimeout = 2 * time.Second
)

func partPrefix(campaign string) string        { return "campaigns/" + campaign + "/ledger/" }
func outcomePartPrefix(campaign string) string { return partPrefix(campaign) + "outcomes-" }
func windowPartPrefix(campaign string) string  { return partPrefix(campaign) + "windows-" }

func outcomePartKey(campaign string, number int) string {
	return fmt.Sprintf("%s%08d", outcomePartPrefix(campaign), number)
}

func windowPartKey(campaign string, first, last int) string {
	return fmt.Sprintf("%s%08d-%08d", windowPartPrefix(campaign), first, last)
}

// folds reports whether the runner stores its ledger. The ledger of a Run ends with it.
func (r *runner) folds() bool { return r.s.cfg.run == nil && r.rec.Released }

// noteOutcome adds an outcome to the next part. found means that it is not in the result stream.
func (r *runner) noteOutcome(id string, round int, to state, reason string, found bool) {
	k, ok := parseIdentity(id)
	if !ok || to == pending || r.s.cfg.run != nil {
		return
	}
	c := &r.checkpoint
	if len(c.outcomes) == 0 {
		c.since = r.s.cfg.Now()
	}
	c.found = c.found || found
	c.outcomes = append(c.outcomes, partEntry{k, to, round, trimReason(reason)})
}

// foldDue stores the next parts of the ledger if they are large enough or old enough.
func (r *runner) foldDue(ctx context.Context) error {
	if !r.folds() {
		return nil
	}
	c := &r.checkpoint
	if len(c.windows) >= foldWindows {
		if err := r.foldWindows(ctx); err != nil {
			return err
		}
	}
	n := len(c.outcomes)
	now := r.s.cfg.Now()
	if r.s.alarm.resultsFull() && now.Sub(c.relieved) >= alarmTicks*r.s.cfg.Tick {
		// At the limit no outcome arrives that would make the next part due.
		c.relieved = now
		return r.foldAll(ctx)
	}
	if n >= r.s.cfg.Fold || c.found || (n > 0 && now.Sub(c.since) >= foldInterval) {
		return r.foldOutcomes(ctx)
	}
	return nil
}

// foldOutcomes stores the outcomes that storage does not have, and then removes those of the part before from the
// result stream.
func (r *runner) foldOutcomes(ctx context.Context) error {
	c := &r.checkpoint
	if !r.folds() || len(c.outcomes) == 0 {
		return nil
	}
	p := part{partHeader: partHeader{Campaign: r.id, Stream: c.stream, Seq: r.seen}, entries: c.outcomes}
	data, err := p.encode()
	if err != nil {
		return fmt.Errorf("encode ledger: %w", err)
	}
	for {
		err = r.s.cfg.Store.Create(ctx, outcomePartKey(r.id, c.next), data)
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("store ledger: %w", err)
		}
		c.next++ // a second leader has stored this part
	}
	previous := c.stored
	c.next, c.stored, c.outcomes, c.found = c.next+1, r.seen, nil, false
	r.log.Debug("stored a part of the ledger", "outcomes", len(p.entries), "through", r.seen)
	return r.purgeOutcomes(ctx, previous)
}

// foldAll stores all outcomes, reads the part again, and removes all stored outcomes from the result stream.
func (r *runner) foldAll(ctx context.Context) error {
	if !r.folds() {
		return nil
	}
	c := &r.checkpoint
	if err := r.foldOutcomes(ctx); err != nil {
		return err
	}
	if c.next == 0 || c.stored <= c.emptied {
		return nil
	}
	key := outcomePartKey(r.id, c.next-1)
	data, err := r.s.cfg.Store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	if _, err := decodePart(data, r.id); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	if err := r.purgeOutcomes(ctx, c.stored); err != nil {
		return err
	}
	c.emptied = c.stored
	return nil
}

// foldAtExit stores the outcomes for the next leader if there are many. An error costs the next leader some time only.
func (r *runner) foldAtExit(ctx context.Context) {
	if r.queue == nil || len(r.checkpoint.outcomes) < foldAtExit {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	if err := r.foldOutcomes(ctx); err != nil {
		r.log.Warn("could not store the ledger for the next leader", "reason", err)
	}
}

// purgeOutcomes removes the campaign's outcomes up to a sequence number from the result stream.
func (r *runner) purgeOutcomes(ctx context.Context, through uint64) error {
	if through == 0 {
		return nil
	}
	if err := r.queue.PurgeResults(ctx, through); err != nil {
		return fmt.Errorf("remove stored outcomes: %w", err)
	}
	return nil
}

// checkStream compares the result stream with the checkpoint. If the stream is another one, or its end was lost, its
// numbers say nothing about stored outcomes, and it is read from the start.
func (r *runner) checkStream(ctx context.Context) error {
	if r.s.cfg.run != nil {
		return nil
	}
	stream, last, err := r.queue.ResultStream(ctx)
	if err != nil {
		return fmt.Errorf("compare the result stream with the ledger: %w", err)
	}
	c := &r.checkpoint
	if c.stream != stream || r.seen > last {
		if r.seen > 0 {
			r.log.Warn("the result stream was replaced; all its outcomes are read again", "seen", r.seen, "last", last)
		}
		c.stream, c.stored, c.emptied, r.seen = stream, 0, 0, 0
	}
	return nil
}
