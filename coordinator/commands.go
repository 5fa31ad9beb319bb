package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// executeVerb executes a command and returns the number of items that it published.
func (r *runner) executeVerb(ctx context.Context, command *command) (int, error) {
	_, repeated := r.rounds.retries[command.key]
	switch {
	case repeated: // its items are pending already
	case board.WantsCancel(r.rec), r.rec.Phase == record.PhaseRejected, r.rec.Phase == record.PhaseCancelled:
		phase := r.rec.Phase
		if !phase.Ended() {
			phase = record.PhaseCancelled
		}
		return 0, rejection{fmt.Errorf("the campaign is %s; resume it first", phase)}
	case command.verb != board.VerbReconcile && !r.rec.Released:
		return 0, rejection{fmt.Errorf("the campaign has not passed its preflight and canary; %s after that", command.verb)}
	}
	// The command applies to all outcomes that were published before it.
	if err := r.catchUp(ctx); err != nil {
		return 0, err
	}
	switch command.verb {
	case board.VerbReconcile:
		if !r.rec.Released {
			return 0, nil // nothing was published yet
		}
		if err := r.reopenMissing(ctx); err != nil {
			return 0, err
		}
		return r.reconcile(ctx)
	case board.VerbRetry:
		return r.retry(ctx, command)
	case board.VerbAppend:
		return r.appendRows(ctx, command)
	}
	return 0, rejection{fmt.Errorf("unknown command %q; use one version of ddiff everywhere", command.verb)}
}

// retry makes failed and dead items pending again and publishes them. It reads rows again that could not be read. The
// stored round has the key of the command, so that a repetition has the same items.
func (r *runner) retry(ctx context.Context, command *command) (int, error) {
	n, repeated := r.rounds.retries[command.key]
	chosen := r.rounds.unsent
	switch {
	case repeated && chosen.Command != command.key:
		return n, nil
	case !repeated:
		items, err := r.chooseItems(ctx, r.matcher(command))
		switch {
		case err != nil:
			return 0, err
		case len(items) == 0 && len(command.Items) > 0:
			return 0, rejection{noItem(command.Items)}
		case len(items) == 0:
			return 0, nil
		}
		if chosen, err = r.rounds.start(ctx, r.outcomes.ledger, ledger.Round{Command: command.key, Items: items}); err != nil {
			return 0, err
		}
	}
	retried := make(map[string]bool, len(chosen.Items))
	for _, id := range chosen.Items {
		retried[id] = true
	}
	_, err := r.republish(ctx, func(id string) bool { return retried[id] })
	if err == nil {
		r.rounds.unsent = ledger.Round{}
	}
	return len(retried), err
}

// appendRows stores and publishes the first window of the rows that a command adds, and returns the number of its items. The window has the
// id of the command, so that a second execution finds it; the others follow as those of a dataset do.
func (r *runner) appendRows(ctx context.Context, command *command) (int, error) {
	if first, repeated := r.windows.appends[command.key]; repeated {
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
	w, err := r.reader.sharder.Append(ctx, r.windows.next, command.Path, command.key)
	if err != nil {
		return 0, rejection{err}
	}
	replaced := 0
	if command.Path == "" {
		if replaced, err = r.replaceTouched(ctx, r.reader.sharder.Touched()); err != nil {
			return 0, err
		}
	}
	if w.Last && w.Header.Items == 0 {
		return replaced, nil
	}
	return replaced + w.Header.Items, r.storeWindow(ctx, shardedWindow{window: w})
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
func (r *runner) matcher(command *command) func(id string) bool {
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
	shard.SortTaskMajor(merged.Items, &r.rec.Spec)
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
