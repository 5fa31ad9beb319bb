package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
)

// maxAnswers is the number of answers that a record keeps.
const maxAnswers = 16

// execute executes a command and replaces it by its answer in the record. A command may be executed twice, when a
// coordinator dies before it answers: items that were published again are pending then, and the second execution
// ignores them.
func (r *runner) execute(ctx context.Context, command manifest.Command) error {
	answer := manifest.Answer{ID: command.ID}
	n, err := r.executeVerb(ctx, command)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answer.Items = n
	var refused rejection
	if errors.As(err, &refused) {
		answer.Error = err.Error()
	} else if err != nil {
		return err // the runner retries
	}
	r.log.Info("executed command", "verb", command.Verb, "items", n, "error", answer.Error)
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Commands = slices.DeleteFunc(c.Commands, func(other manifest.Command) bool { return other.ID == command.ID })
		c.Answered = append(c.Answered, answer)
		c.Answered = c.Answered[max(0, len(c.Answered)-maxAnswers):]
		if n > 0 && c.Phase.Ended() {
			c.Phase, c.Wanted = manifest.PhaseRunning, manifest.WantRun
		}
	})
}

// executeVerb executes a command and returns the number of items that it published.
func (r *runner) executeVerb(ctx context.Context, command manifest.Command) (int, error) {
	if r.rec.Phase == manifest.PhaseRejected || r.rec.Phase == manifest.PhaseCancelled {
		return 0, rejection{fmt.Errorf("the campaign is %s; resume it first", r.rec.Phase)}
	}
	// The command applies to all outcomes that were published before it.
	if err := r.catchUp(ctx); err != nil {
		return 0, err
	}
	switch command.Verb {
	case manifest.CommandReconcile:
		if !r.rec.Released {
			return 0, nil // nothing was published yet
		}
		if err := r.reopenMissing(ctx); err != nil {
			return 0, err
		}
		return r.reconcile(ctx)
	case manifest.CommandRetry:
		return r.retry(ctx, command)
	}
	return 0, rejection{fmt.Errorf("unknown command %q; use one version of ddiff everywhere", command.Verb)}
}

// retry makes failed and dead items pending again and publishes them. It reads rows again that could not be read.
func (r *runner) retry(ctx context.Context, command manifest.Command) (int, error) {
	match := r.matcher(command)
	chosen := round{Schema: manifest.RecordSchema, Round: r.rec.Round + 1}
	unread := map[int]bool{} // windows with chosen rows that could not be read
	err := r.eachWindow(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if match(it.ID) {
				chosen.Items = append(chosen.Items, it.ID)
			}
		}
		for _, f := range w.Failed {
			if match(f.Item.ID) {
				unread[w.Number] = true
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(chosen.Items) == 0 && len(unread) == 0 {
		return 0, nil
	}
	if err := r.startRound(ctx, chosen); err != nil {
		return 0, err
	}
	retried := make(map[string]bool, len(chosen.Items))
	for _, id := range chosen.Items {
		retried[id] = true
	}
	if err := r.removeDead(ctx, retried); err != nil {
		return 0, err
	}
	n := 0
	err = r.eachWindow(ctx, func(w *shard.Window) error {
		if unread[w.Number] {
			fresh, err := r.rebuildWindow(ctx, w, retried)
			if err != nil {
				return err
			}
			w = fresh
		}
		if w.Number >= r.rec.Shards {
			return nil // published later
		}
		sent, err := r.publish(ctx, w.Items, func(it manifest.Item) bool { return retried[it.ID] })
		n += sent
		return err
	})
	return n, err
}

// matcher selects the identities that a retry applies to.
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

// rebuildWindow makes a window again from the current dataset and replaces the stored one. Items that the old window
// has stay the same; the items of rows that can be read now are new, and are added to retried.
func (r *runner) rebuildWindow(ctx context.Context, old *shard.Window, retried map[string]bool) (*shard.Window, error) {
	r.stopReader() // one goroutine at a time may use the sharder
	fresh, err := r.sharder.Again(ctx, old)
	if err != nil {
		return nil, rejection{err}
	}
	placeholders := map[int]string{} // by index in the manifest
	for _, f := range old.Failed {
		placeholders[f.Item.Index] = f.Item.ID
	}
	merged := &shard.Window{Header: old.Header, Items: old.Items}
	for _, it := range fresh.Items {
		if id, ok := placeholders[it.Index]; ok {
			r.ledger.remove(id)
			r.ledger.add(it.ID)
			merged.Items = append(merged.Items, it)
			retried[it.ID] = true
		}
	}
	for _, f := range fresh.Failed {
		if _, ok := placeholders[f.Item.Index]; ok {
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

// removeDead deletes the dead letters of the given identities.
func (r *runner) removeDead(ctx context.Context, ids map[string]bool) error {
	for letter, err := range r.queue.DeadLetters(ctx) {
		if errors.Is(err, queue.ErrDamaged) {
			r.log.Warn("skipped a dead letter", "reason", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		if ids[letter.ID] {
			if err := r.queue.RemoveDead(ctx, letter.Seq); err != nil {
				return fmt.Errorf("remove a dead letter: %w", err)
			}
		}
	}
	return nil
}
