package gc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/internal/report/result"
	"ddiff/internal/tune"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Delete deletes a campaign that has ended: its report, checkpoints, windows and records, and with results also the
// results that no other campaign of the output refers to. It keeps the report and the checkpoints that other campaigns of
// the output share. A campaign on the board is archived first.
//
// The error is queue.ErrNoRecord for an unknown campaign, ErrRefused for a campaign that has not ended, whose results
// an open campaign may need, or whose objects the store does not permit to delete, or ErrNoIndex.
func (c *Cleaner) Delete(ctx context.Context, id string, results bool) ([]api.Removal, error) {
	d := &deletion{Cleaner: c, x: index.New(c.Store), id: id, results: results}
	err := d.checkIndex(ctx)
	if err == nil {
		err = d.examine(ctx)
	}
	if err == nil {
		err = d.collectOwn(ctx)
	}
	if err == nil && !c.DryRun {
		err = d.probe(ctx)
	}
	if err == nil && !c.DryRun {
		err = d.claim(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("delete campaign %s: %w", id, err)
	}
	return d.run(ctx)
}

// deletion is the deletion of one campaign.
type deletion struct {
	*Cleaner
	x       index.Index
	id      string
	results bool
	newest  index.Entry
	record  *record.Campaign // nil if a crashed deletion has deleted it
	others  []*record.Campaign
	// own has the identities of the campaign that no other campaign of its output has.
	own map[item.Identity]bool
}

// examine reads what the deletion needs, and refuses a campaign that has not ended.
func (d *deletion) examine(ctx context.Context) (err error) {
	if d.newest, err = d.x.Newest(ctx, d.id); err != nil {
		return err
	}
	if d.newest.State == index.Deleting {
		d.results = d.results || d.newest.Results
	}
	if err := d.checkEnded(ctx); err != nil {
		return err
	}
	d.record, err = d.load(ctx, d.id)
	switch {
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	case err != nil && d.newest.State == "":
		return queue.ErrNoRecord
	}
	return nil
}

// checkEnded refuses a campaign that has not ended.
func (d *deletion) checkEnded(ctx context.Context) error {
	if d.Board == nil {
		if d.newest.State == index.Open {
			return fmt.Errorf("%w: the campaign is on the board; delete it with: ddiff delete", board.ErrRefused)
		}
		return nil
	}
	c, err := board.Read(ctx, d.Board, d.id)
	if errors.Is(err, queue.ErrNoRecord) {
		return nil
	}
	if err == nil && board.Active(c) {
		return fmt.Errorf("%w: the campaign has not ended, its phase is %s; cancel it first: ddiff cancel %s", board.ErrRefused, c.Phase, d.id)
	}
	return err
}

// sharing returns the other campaigns with this campaign's output, and refuses to delete results if one of them is open:
// it may find results that it refers to only later.
func (d *deletion) sharing(ctx context.Context) ([]*record.Campaign, error) {
	if d.record == nil {
		return nil, nil
	}
	onBoard, entries, err := d.campaigns(ctx)
	if err != nil {
		return nil, err
	}
	output := strings.TrimSuffix(d.record.Output, "/")
	var others []*record.Campaign
	open := ""
	for _, c := range onBoard {
		if c.ID == d.id || strings.TrimSuffix(c.Output, "/") != output {
			continue
		}
		others = append(others, c)
		if board.Active(c) {
			open = c.ID
		}
	}
	for id, e := range entries {
		if id == d.id || e.Output != index.OutputDigest(output) || e.State == index.Deleting {
			continue
		}
		c, err := board.Load(ctx, d.Store, id)
		if err != nil {
			return nil, err
		}
		if strings.TrimSuffix(c.Output, "/") != output {
			continue
		}
		others = append(others, c)
		if e.State == index.Open {
			open = id // the board is not known, or has lost it
		}
	}
	if d.results && open != "" {
		return nil, fmt.Errorf("%w: campaign %s, which has not ended, uses the results in %s too", board.ErrRefused, open, output)
	}
	return others, nil
}

// collectOwn fills others, and own from the windows.
func (d *deletion) collectOwn(ctx context.Context) (err error) {
	if d.others, err = d.sharing(ctx); err != nil || d.record == nil {
		return err
	}
	d.own = map[item.Identity]bool{}
	err = d.eachItem(ctx, d.id, func(k item.Identity) { d.own[k] = true })
	for _, other := range d.others {
		if err == nil {
			err = d.eachItem(ctx, other.ID, func(k item.Identity) { delete(d.own, k) })
		}
	}
	return err
}

// eachItem calls f with the identities of a campaign's items.
func (d *deletion) eachItem(ctx context.Context, id string, f func(k item.Identity)) error {
	for w, err := range shard.All(ctx, d.Store, id) {
		if err != nil {
			return err
		}
		for _, it := range w.Items {
			if k, ok := item.ParseIdentity(it.ID); ok {
				f(k)
			}
		}
	}
	return nil
}

// Probe is the name of objects that do not exist. A deletion deletes them first: a store that does not permit it keeps everything.
const Probe = ".probe"

// probe refuses the deletion unless the store permits it in each folder that it needs.
func (d *deletion) probe(ctx context.Context) error {
	folders := []string{"campaigns/" + d.id + "/", index.Prefix}
	if d.record != nil {
		folders = append(folders, outputKey(d.record.Output, "checkpoints/"))
	}
	if d.record != nil && d.results {
		folders = append(folders, outputKey(d.record.Output, "items/"))
	}
	for _, folder := range folders {
		err := d.Store.Delete(ctx, folder+Probe)
		if errors.Is(err, storage.ErrReadOnly) {
			return fmt.Errorf("%w: the store does not permit deletions; permit s3:DeleteObject, then repeat the command: %w", board.ErrRefused, err)
		}
		if err != nil && !errors.Is(err, storage.ErrBadKey) { // of a campaign that was rejected for its output
			return err
		}
	}
	return nil
}

// claim enters the deletion into the index. From then on the campaign cannot be recalled, and Delete and Collect complete
// the deletion after a crash. See index.Index.Open for the other side.
func (d *deletion) claim(ctx context.Context) (err error) {
	if d.Board != nil && d.newest.State != index.Deleting {
		if err := d.leaveBoard(ctx); err != nil {
			return err
		}
	}
	if d.newest, err = d.x.Newest(ctx, d.id); err != nil {
		return err
	}
	if d.newest.State == index.Open {
		return fmt.Errorf("%w: the campaign was resumed", board.ErrRefused)
	}
	if d.newest.State != index.Deleting || d.results && !d.newest.Results {
		d.newest = index.Entry{ID: d.id, Number: d.newest.Number + 1, State: index.Deleting, Results: d.results, Output: d.newest.Output}
		if d.record != nil {
			d.newest.Output = index.OutputDigest(d.record.Output)
		}
		if err := d.x.Add(ctx, d.newest); err != nil {
			return err
		}
	}
	if d.record != nil {
		if err := d.x.Bury(ctx, d.record); err != nil {
			return err
		}
	}
	resumed, err := d.onBoard(ctx, d.id)
	if err != nil {
		return err
	}
	for e, err := range d.x.Entries(ctx, d.id) {
		if err != nil {
			return err
		}
		resumed = resumed || e.State == index.Open && e.Number >= d.newest.Number
	}
	if resumed {
		return errors.Join(fmt.Errorf("%w: the campaign was resumed", board.ErrRefused), d.unclaim(context.WithoutCancel(ctx)))
	}
	return nil
}

// unclaim takes the claim back.
func (d *deletion) unclaim(ctx context.Context) error {
	var err error
	if d.record != nil {
		err = d.Store.Delete(ctx, d.record.Tombstone())
	}
	return errors.Join(err, d.Store.Delete(ctx, d.newest.MarkKey()), d.Store.Delete(ctx, d.newest.Key()))
}

// leaveBoard archives the campaign unless it is in the archive.
func (d *deletion) leaveBoard(ctx context.Context) error {
	there, err := d.onBoard(ctx, d.id)
	if err != nil || !there && d.newest.State == index.Archived {
		return err
	}
	return d.Archive(ctx, d.id)
}

// step is the deletion of the objects of a listing.
type step struct {
	kind, name string
	listing    objects
	check      func() error // see Cleaner.remove
}

// run deletes the data. The windows name the results, so they are deleted after them; the entry in the index is last.
func (d *deletion) run(ctx context.Context) ([]api.Removal, error) {
	var steps []step
	if d.record != nil {
		steps = d.outputSteps(ctx)
	}
	folder := "campaigns/" + d.id + "/"
	older := func(i storage.Info) bool { return i.Key != d.newest.Key() && !index.IsTombstone(i.Key) }
	steps = append(steps,
		step{"windows", d.id, d.list(ctx, folder, func(i storage.Info) bool { return i.Key != board.StoredKey(d.id) }), nil},
		step{"record", d.id, d.only(ctx, board.StoredKey(d.id)), nil},
		step{"index", d.id, d.list(ctx, index.Prefix+d.id+".", older), nil},
		step{"index", d.id, d.only(ctx, d.newest.MarkKey()), nil},
		step{"index", d.id, d.only(ctx, d.newest.Key()), nil},
	)
	var all []api.Removal
	for _, s := range steps {
		r, err := d.remove(ctx, s.kind, s.name, s.listing, s.check)
		if n := len(all) - 1; n >= 0 && all[n].Kind == r.Kind && all[n].Name == r.Name {
			all[n].Objects += r.Objects
			all[n].Bytes += r.Bytes
		} else if r.Objects > 0 {
			all = append(all, r)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// outputSteps deletes what the campaign has in its output.
func (d *deletion) outputSteps(ctx context.Context) []step {
	output := d.record.Output
	folder := func(name string) objects {
		return d.list(ctx, outputKey(output, name), func(i storage.Info) bool { return isOutputKey(output, i.Key) })
	}
	var steps []step
	if d.results {
		// A result.json proves that all other files of its item exist, so it is deleted first.
		steps = append(steps,
			step{"results", output, d.ownResults(ctx, true), d.checkSharing(ctx)},
			step{"results", output, d.ownResults(ctx, false), d.checkSharing(ctx)})
	}
	prefix := outputKey(output, item.CheckpointsFolder)
	checkpoints := d.list(ctx, prefix, func(i storage.Info) bool {
		id, _, _ := strings.Cut(strings.TrimPrefix(i.Key, prefix), ".")
		return d.owns(id)
	})
	if !d.results {
		checkpoints = d.withoutAwaited(ctx, outputKey(output, ""), checkpoints)
	}
	steps = append(steps,
		step{"checkpoints", output, checkpoints, nil},
		step{"report", output, folder(result.FailuresFolder + d.id + "/"), nil},
		step{"logs", output, folder(record.LogPrefix(d.id, "")), nil})
	if len(d.others) > 0 {
		return steps
	}
	if d.results { // scores and tunings are about the results
		for _, name := range []string{result.ScoresFolder, tune.Folder} {
			steps = append(steps, step{strings.TrimSuffix(name, "/"), output, folder(name), d.checkSharing(ctx)})
		}
	}
	for _, key := range report.Keys() {
		steps = append(steps, step{"report", output, d.only(ctx, outputKey(output, key)), nil})
	}
	return append(steps,
		step{"report", output, folder("sheets/"), nil},
		step{"report", output, folder(report.FigureFolder), nil})
}

// owns reports whether an identity belongs to no other campaign of the output.
func (d *deletion) owns(id string) bool {
	k, ok := item.ParseIdentity(id)
	return ok && d.own[k]
}

// ownResults lists the files of own items: their result.json, or the other files.
func (d *deletion) ownResults(ctx context.Context, result bool) objects {
	prefix := outputKey(d.record.Output, "items/")
	return d.list(ctx, prefix, func(i storage.Info) bool {
		id, file, _ := strings.Cut(strings.TrimPrefix(i.Key, prefix), "/")
		return (file == item.FileResult) == result && d.owns(id)
	})
}

// checkSharing returns a check that no other campaign has begun to use the output.
func (d *deletion) checkSharing(ctx context.Context) func() error {
	return func() error {
		others, err := d.sharing(ctx)
		if err == nil && len(others) > len(d.others) {
			err = fmt.Errorf("%w: another campaign began to use the output; rerun the command", board.ErrRefused)
		}
		return err
	}
}
