package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
)

// maxAnswers is the number of answers that a record keeps.
const maxAnswers = 16

// answer executes a command and writes what came of it in its place. A command that is
// executed twice, because a coordinator died before it could answer, does no harm: what was
// published again is pending already.
func (r *runner) answer(ctx context.Context, command manifest.Command) error {
	answered := manifest.Answer{ID: command.ID}
	n, err := r.execute(ctx, command)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answered.Items = n
	var refused rejection
	if errors.As(err, &refused) {
		answered.Error = err.Error()
	} else if err != nil {
		return err // it is tried again
	}
	r.log.Info("command", "verb", command.Verb, "items", n, "error", answered.Error)
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Commands = slices.DeleteFunc(c.Commands, func(other manifest.Command) bool { return other.ID == command.ID })
		c.Answered = append(c.Answered, answered)
		c.Answered = c.Answered[max(0, len(c.Answered)-maxAnswers):]
		if n > 0 && c.Phase.Ended() {
			c.Phase, c.Wanted = manifest.PhaseRunning, manifest.WantRun
		}
	})
}

func (r *runner) execute(ctx context.Context, command manifest.Command) (int, error) {
	if r.rec.Phase == manifest.PhaseRejected || r.rec.Phase == manifest.PhaseCancelled {
		return 0, rejection{fmt.Errorf("the campaign is %s; resume it first", r.rec.Phase)}
	}
	// Outcomes that are on their way belong to what is looked at.
	if err := r.catchUp(ctx); err != nil {
		return 0, err
	}
	switch command.Verb {
	case manifest.CommandReconcile:
		if !r.rec.Released {
			return 0, nil // nothing was published yet
		}
		if err := r.findGone(ctx); err != nil {
			return 0, err
		}
		return r.reconcile(ctx)
	case manifest.CommandRetry:
		return r.retry(ctx, command)
	}
	return 0, rejection{fmt.Errorf("unknown command %q; use one version of ddiff everywhere", command.Verb)}
}

// catchUp enters the outcomes that the stream has by now.
func (r *runner) catchUp(ctx context.Context) error {
	last, err := r.queue.LastResult(ctx)
	if err != nil {
		return fmt.Errorf("look at the results: %w", err)
	}
	for r.seen < last {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-r.events:
			if err := r.enter(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// round is what a retry took back, as storage keeps it.
type round struct {
	Schema int      `json:"schema"`
	Round  int      `json:"round"`
	Items  []string `json:"items"`
	// Gone tells that the items were done, and that their results are not in storage.
	Gone bool `json:"gone,omitempty"`
}

func roundPrefix(campaign string) string { return "campaigns/" + campaign + "/rounds/" }

// retry takes final states back and publishes the items anew. Rows that could not be read are
// read again.
func (r *runner) retry(ctx context.Context, command manifest.Command) (int, error) {
	match := r.matcher(command)
	chosen := round{Schema: manifest.RecordSchema, Round: r.rec.Round + 1}
	mended := map[int]bool{}
	err := r.each(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if match(it.ID) {
				chosen.Items = append(chosen.Items, it.ID)
			}
		}
		for _, f := range w.Failed {
			if match(f.Item.ID) {
				mended[w.Number] = true
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(chosen.Items) == 0 && len(mended) == 0 {
		return 0, nil
	}
	if err := r.storeRound(ctx, chosen); err != nil {
		return 0, err
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = chosen.Round }); err != nil {
		return 0, err
	}
	again := make(map[string]bool, len(chosen.Items))
	for _, id := range chosen.Items {
		again[id] = true
		r.ledger.reopen(id, chosen.Round)
	}
	if err := r.removeDead(ctx, again); err != nil {
		return 0, err
	}
	n := 0
	err = r.each(ctx, func(w *shard.Window) error {
		if mended[w.Number] {
			fresh, err := r.mend(ctx, w, again)
			if err != nil {
				return err
			}
			w = fresh
		}
		if w.Number >= r.rec.Shards {
			return nil // its turn comes
		}
		items := slices.DeleteFunc(w.Items, func(it manifest.Item) bool { return !again[it.ID] })
		sent, err := r.publish(ctx, items, nil)
		n += sent
		return err
	})
	return n, err
}

// matcher tells which identities a retry is about.
func (r *runner) matcher(command manifest.Command) func(id string) bool {
	states := map[state]bool{}
	for _, o := range command.Outcomes {
		states[stateOf(o)] = true
	}
	only := map[string]bool{}
	for _, id := range command.Items {
		only[id] = true
	}
	return func(id string) bool {
		if len(only) > 0 && !only[id] {
			return false
		}
		s := r.ledger.state(id)
		return (s == failed || s == dead) && states[s] && strings.Contains(r.ledger.reason(id), command.Where)
	}
}

// mend makes a window anew from the dataset as it is now and stores it in place of the old
// one. Items that were sound before stay as they were; the new ones are added to again.
func (r *runner) mend(ctx context.Context, old *shard.Window, again map[string]bool) (*shard.Window, error) {
	fresh, err := r.sharder.Again(ctx, old.Header)
	if err != nil {
		return nil, rejection{err}
	}
	was := map[int]string{} // manifest index -> placeholder
	for _, f := range old.Failed {
		was[f.Item.Index] = f.Item.ID
	}
	merged := &shard.Window{Header: old.Header, Items: old.Items}
	for _, it := range fresh.Items {
		if id, ok := was[it.Index]; ok {
			r.ledger.forget(id)
			r.ledger.expect(it.ID)
			merged.Items = append(merged.Items, it)
			again[it.ID] = true
		}
	}
	for _, f := range fresh.Failed {
		if _, ok := was[f.Item.Index]; ok {
			merged.Failed = append(merged.Failed, f)
		}
	}
	manifest.SortTaskMajor(merged.Items, &r.rec.Spec)
	data, _, err := merged.Encode()
	if err != nil {
		return nil, err
	}
	if err := r.s.cfg.Store.Put(ctx, shard.Key(r.id, merged.Number), data); err != nil {
		return nil, fmt.Errorf("store window %d: %w", merged.Number, err)
	}
	return merged, nil
}

// removeDead drops the dead letters of items that are tried again.
func (r *runner) removeDead(ctx context.Context, again map[string]bool) error {
	for letter, err := range r.queue.DeadLetters(ctx) {
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		if again[letter.ID] {
			if err := r.queue.RemoveDead(ctx, letter.Seq); err != nil {
				return fmt.Errorf("remove a dead letter: %w", err)
			}
		}
	}
	return nil
}

// storeRound keeps what was taken back, before anything of it is published.
func (r *runner) storeRound(ctx context.Context, taken round) error {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(taken); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	key := fmt.Sprintf("%s%06d.json.gz", roundPrefix(r.id), taken.Round)
	if err := r.s.cfg.Store.Put(ctx, key, out.Bytes()); err != nil {
		return fmt.Errorf("store what is tried again: %w", err)
	}
	return nil
}

// restoreRounds takes back what earlier retries took back.
func (r *runner) restoreRounds(ctx context.Context) error {
	for info, err := range r.s.cfg.Store.List(ctx, roundPrefix(r.id)) {
		if err != nil {
			return fmt.Errorf("list rounds: %w", err)
		}
		data, err := r.s.cfg.Store.Get(ctx, info.Key)
		if err != nil {
			return fmt.Errorf("read round: %w", err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("read round %s: %w", info.Key, err)
		}
		var taken round
		if err := json.NewDecoder(zip).Decode(&taken); err != nil {
			return fmt.Errorf("read round %s: %w", info.Key, err)
		}
		for _, id := range taken.Items {
			if taken.Gone {
				r.ledger.lose(id, taken.Round)
			} else {
				r.ledger.reopen(id, taken.Round)
			}
		}
		if taken.Round > r.rec.Round {
			if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = max(c.Round, taken.Round) }); err != nil {
				return err
			}
		}
	}
	return nil
}
