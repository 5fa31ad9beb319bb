package coordinator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/regular"
	"ddiff/restore/item"
)

// overwritten are the files that have other bytes than their results, by path.
type overwritten map[string]bool

func (o overwritten) first() string {
	for _, path := range slices.Sorted(maps.Keys(o)) {
		return path
	}
	return ""
}

// replaceTouched reads rows again whose files were modified since their windows. Of a row that was never restored, the items with the bytes of now
// replace the others in its window, and run. A file with other bytes whose items are done is overwritten. Rows that were judged before are not read
// again. It returns the number of items that run.
func (r *runner) replaceTouched(ctx context.Context, rows []shard.Touched) (n int, err error) {
	byWindow := map[int][]shard.Touched{}
	for _, t := range rows {
		if r.judged[t] {
			continue
		}
		byWindow[t.Window] = append(byWindow[t.Window], t)
	}
	for _, number := range slices.Sorted(maps.Keys(byWindow)) {
		old, err := r.windows.read(ctx, number)
		if err != nil {
			return n, err
		}
		replaced, err := r.replaceRows(ctx, old, byWindow[number])
		if errors.Is(err, shard.ErrMoved) {
			r.log.Warn("files that were modified are not read again", "window", number, "reason", err)
			continue
		}
		if err != nil {
			return n, err
		}
		n += replaced
	}
	return n, nil
}

// replaceRows is replaceTouched for one window.
func (r *runner) replaceRows(ctx context.Context, old *shard.Window, rows []shard.Touched) (n int, err error) {
	again := map[int]string{} // the identities to replace, by index in the manifest
	open := map[shard.Touched]bool{}
	done := map[string]string{} // the digests of files with results
	note := func(it item.Item) {
		i := slices.IndexFunc(rows, func(t shard.Touched) bool { return t.Of(it) })
		if i < 0 {
			return
		}
		switch r.outcomes.ledger.State(it.ID) {
		case ledger.Failed, ledger.Dead:
			again[it.Index] = it.ID
		case ledger.Done:
			if source := cmp.Or(it.Image, it.Measurement); source != nil {
				done[source.Path] = source.SHA256
			}
		default: // a worker finds out whether it can be restored
			open[rows[i]] = true
		}
	}
	for _, it := range old.Items {
		note(it)
	}
	for _, f := range old.Failed {
		note(f.Item)
	}
	for path, sha256 := range done {
		if err := r.noteOverwritten(ctx, path, sha256); err != nil {
			return 0, err
		}
	}
	var ids []string
	if len(again) > 0 {
		if ids, err = r.exchange(ctx, old, again); err != nil {
			return 0, err
		}
	}
	if r.judged == nil {
		r.judged = map[shard.Touched]bool{}
	}
	for _, t := range rows {
		r.judged[t] = !open[t]
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return r.republish(ctx, func(id string) bool { return slices.Contains(ids, id) })
}

// exchange puts the items that the rows of a window have now in the place of others, by index, and returns the identities of those that can run.
func (r *runner) exchange(ctx context.Context, old *shard.Window, again map[int]string) (ids []string, err error) {
	fresh, err := r.reader.again(ctx, old, r.windows.next)
	if err != nil {
		return nil, err
	}
	sound := map[int]bool{}
	for _, it := range fresh.Items {
		sound[it.Index] = true
	}
	maps.DeleteFunc(again, func(index int, _ string) bool { return !sound[index] })
	merged := &shard.Window{Header: old.Header}
	for _, w := range []*shard.Window{old, fresh} {
		for _, it := range w.Items {
			before, chosen := again[it.Index]
			if chosen && w == fresh && it.ID != before {
				ids = append(ids, it.ID)
			}
			if chosen == (w == fresh) {
				merged.Items = append(merged.Items, it)
			}
		}
		for _, f := range w.Failed {
			if _, chosen := again[f.Item.Index]; chosen == (w == fresh) {
				merged.Failed = append(merged.Failed, f)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	shard.SortTaskMajor(merged.Items, &r.rec.Spec)
	if err := r.windows.replace(ctx, merged); err != nil {
		return nil, err
	}
	for _, it := range merged.Items {
		if before, chosen := again[it.Index]; chosen && it.ID != before {
			r.outcomes.ledger.Remove(before)
			r.outcomes.ledger.Add(it.ID)
		}
	}
	return ids, nil
}

// noteOverwritten compares a file that has results with its digest of then.
func (r *runner) noteOverwritten(ctx context.Context, path, sha256 string) error {
	data, err := r.s.cfg.Sources.Get(ctx, path)
	if shard.IsUnavailable(err) {
		return err
	}
	if r.overwritten == nil {
		r.overwritten = overwritten{}
	}
	if delete(r.overwritten, path); err == nil && regular.SHA256(data) != sha256 {
		r.overwritten[path] = true
	}
	return nil
}
