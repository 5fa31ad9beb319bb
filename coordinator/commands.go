package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// maxAnswers is the number of answers that a record keeps.
const maxAnswers = 16

// execute executes a command and replaces it by its answer in the record. A command is executed again when a coordinator
// dies before it answers.
func (r *runner) execute(ctx context.Context, command manifest.Command) error {
	n, err := r.executeVerb(ctx, command)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a := manifest.Answer{ID: command.ID, Items: n}
	var refused rejection
	if errors.As(err, &refused) {
		a.Error = brief(err.Error())
	} else if err != nil {
		return err // the runner retries
	}
	r.log.Info("executed command", "verb", command.Verb, "items", n, "error", a.Error)
	more := n > 0 || command.Verb == manifest.CommandAppend && !r.windows.complete // the first new rows may have no items
	ended := r.rec.Phase.Ended() && (!more || r.rec.Phase != manifest.PhaseFinished)
	if ended { // no coordinator opens the campaign after the last answer
		if err := r.queue.drop(ctx); err != nil {
			return err
		}
	}
	err = r.save(ctx, func(c *manifest.Campaign) {
		answer(c, a)
		if more && c.Phase == manifest.PhaseFinished {
			c.Phase, c.Wanted = manifest.PhaseRunning, manifest.WantRun
		}
	})
	if err == nil && ended && board.Active(r.rec) {
		return r.openQueue(ctx)
	}
	return err
}

// answer replaces a command of the record by its answer, unless another coordinator has answered it.
func answer(c *manifest.Campaign, a manifest.Answer) {
	i := slices.IndexFunc(c.Commands, func(command manifest.Command) bool { return command.ID == a.ID })
	if i < 0 {
		return
	}
	c.Commands = slices.Delete(c.Commands, i, i+1)
	c.Answered = append(c.Answered, a)
	c.Answered = c.Answered[max(0, len(c.Answered)-maxAnswers):]
}

// executeVerb executes a command and returns the number of items that it published.
func (r *runner) executeVerb(ctx context.Context, command manifest.Command) (int, error) {
	_, repeated := r.rounds.retries[command.ID]
	switch {
	case repeated: // its items are pending already
	case board.WantsCancel(r.rec), r.rec.Phase == manifest.PhaseRejected, r.rec.Phase == manifest.PhaseCancelled:
		phase := r.rec.Phase
		if !phase.Ended() {
			phase = manifest.PhaseCancelled
		}
		return 0, rejection{fmt.Errorf("the campaign is %s; resume it first", phase)}
	case command.Verb != manifest.CommandReconcile && !r.rec.Released:
		return 0, rejection{fmt.Errorf("the campaign has not passed its preflight and canary; %s after that", command.Verb)}
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
	case manifest.CommandAppend:
		return r.appendRows(ctx, command)
	}
	return 0, rejection{fmt.Errorf("unknown command %q; use one version of ddiff everywhere", command.Verb)}
}

// retry makes failed and dead items pending again and publishes them. It reads rows again that could not be read. The
// stored round has the id of the command, so that a second execution publishes the same items.
func (r *runner) retry(ctx context.Context, command manifest.Command) (int, error) {
	chosen, repeated := r.rounds.retries[command.ID]
	if !repeated {
		items, err := r.chooseItems(ctx, r.matcher(command))
		switch {
		case err != nil:
			return 0, err
		case len(items) == 0 && len(command.Items) > 0:
			return 0, rejection{noItem(command.Items)}
		case len(items) == 0:
			return 0, nil
		}
		if chosen, err = r.rounds.start(ctx, r.outcomes.ledger, ledger.Round{Command: command.ID, Items: items}); err != nil {
			return 0, err
		}
	}
	retried := make(map[string]bool, len(chosen.Items))
	for _, id := range chosen.Items {
		retried[id] = true
	}
	_, err := r.republish(ctx, func(id string) bool { return retried[id] })
	return len(retried), err
}

// appendRows stores and publishes the first window of the rows that a command adds, and returns the number of its items. The window has the
// id of the command, so that a second execution finds it; the others follow as those of a dataset do.
func (r *runner) appendRows(ctx context.Context, command manifest.Command) (int, error) {
	if first, repeated := r.windows.appends[command.ID]; repeated {
		w, err := r.windows.read(ctx, first)
		if err != nil {
			return 0, err
		}
		return w.Header.Items, nil
	}
	if !r.windows.complete {
		return 0, rejection{fmt.Errorf("the campaign still reads its dataset, %d rows so far; append when it has", r.windows.next.Row)}
	}
	r.reader.stop() // one goroutine at a time may use the sharder
	w, err := r.reader.sharder.Append(ctx, r.windows.next, command.Path, command.ID)
	if err != nil {
		return 0, rejection{err}
	}
	if w.Last && w.Header.Items == 0 {
		return 0, nil
	}
	return w.Header.Items, r.storeWindow(ctx, shardedWindow{window: w})
}

// noItem is the answer to a retry of items none of which has failed. The record of the campaign keeps it: it names a few of thousands.
func noItem(items []string) error {
	const named = 3
	more := ""
	if n := len(items) - named; n > 0 {
		items, more = items[:named], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("it has no failed or dead item %.200s%s", strings.Join(items, ", "), more)
}

// chooseItems returns the identities that a retry applies to, each once. It makes windows again with chosen items that
// could not be read, and returns the identities that these items have now.
func (r *runner) chooseItems(ctx context.Context, match func(id string) bool) ([]string, error) {
	var ids []string
	chosen := map[string]bool{}
	choose := func(id string) {
		if !chosen[id] {
			chosen[id] = true
			ids = append(ids, id)
		}
	}
	err := r.windows.each(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if match(it.ID) {
				choose(it.ID)
			}
		}
		if !slices.ContainsFunc(w.Failed, func(f item.Result) bool { return match(f.Item.ID) }) {
			return nil
		}
		fresh, err := r.rebuildWindow(ctx, w, match)
		if err != nil {
			return err
		}
		for _, it := range fresh {
			if r.outcomes.ledger.State(it.ID) != ledger.Done {
				choose(it.ID)
			}
		}
		return nil
	})
	return ids, err
}

// matcher selects the identities that a retry applies to.
func (r *runner) matcher(command manifest.Command) func(id string) bool {
	states := map[ledger.State]bool{}
	for _, o := range command.Outcomes {
		states[ledger.StateOf(o)] = true
	}
	named := func(id string) bool {
		return len(command.Items) == 0 || slices.ContainsFunc(command.Items, func(begin string) bool { return strings.HasPrefix(id, begin) })
	}
	return func(id string) bool {
		s := r.outcomes.ledger.State(id)
		return (s == ledger.Failed || s == ledger.Dead) && states[s] && strings.Contains(r.outcomes.ledger.Reason(id), command.Where) && named(id)
	}
}

// rebuildWindow makes the chosen items of a window that could not be read again, from the current dataset, and replaces the
// stored window unless nothing has changed. All other items and failures of the window stay. It returns the chosen items that can be read now.
func (r *runner) rebuildWindow(ctx context.Context, old *shard.Window, match func(id string) bool) (readable []item.Item, err error) {
	fresh, err := r.reader.again(ctx, old, r.windows.next)
	if err != nil {
		return nil, rejection{err}
	}
	merged := &shard.Window{Header: old.Header, Items: slices.Clone(old.Items)}
	chosen := map[int]item.Result{} // by index in the manifest
	for _, f := range old.Failed {
		if match(f.Item.ID) {
			chosen[f.Item.Index] = f
		} else {
			merged.Failed = append(merged.Failed, f)
		}
	}
	for _, it := range fresh.Items {
		if _, ok := chosen[it.Index]; ok {
			merged.Items, readable = append(merged.Items, it), append(readable, it)
		}
	}
	changed := len(readable) > 0
	for _, f := range fresh.Failed {
		if before, ok := chosen[f.Item.Index]; ok {
			merged.Failed = append(merged.Failed, f)
			changed = changed || f.Item.ID != before.Item.ID || f.Reason != before.Reason
		}
	}
	if !changed { // a stored window makes every list of the items begin again
		return nil, nil
	}
	manifest.SortTaskMajor(merged.Items, &r.rec.Spec)
	if err := r.windows.replace(ctx, merged); err != nil {
		return nil, err
	}
	for _, it := range readable {
		r.outcomes.ledger.Remove(chosen[it.Index].Item.ID)
		r.outcomes.ledger.Add(it.ID)
	}
	return readable, nil
}

// rereadFirst makes the first window with items again, of a campaign that begins again before its release: a person may have mended
// its files, or its source had cut them. If the rows have moved, the window stays.
func (r *runner) rereadFirst(ctx context.Context) (*shard.Window, error) {
	old, err := r.windows.first(ctx)
	if err != nil || r.reader.sharder == nil {
		return old, err
	}
	fresh, err := r.reader.again(ctx, old, r.windows.next)
	switch {
	case errors.Is(err, shard.ErrMoved):
		r.log.Warn("the files of the first window are not read again", "reason", err)
		return old, nil
	case shard.IsDatasetError(err):
		return nil, rejection{err}
	case err == nil:
		err = r.windows.replace(ctx, fresh)
	}
	if err != nil {
		return nil, err
	}
	r.outcomes.count(fresh) // first: the last item of an identity that is removed counts as failed
	for _, it := range old.Items {
		r.outcomes.ledger.Remove(it.ID)
	}
	for _, f := range old.Failed {
		r.outcomes.ledger.Remove(f.Item.ID)
	}
	return fresh, nil
}
