package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
)

// itemHook follows the items of a runner. Only a [Run] has one.
type itemHook interface {
	// windowRead is called for a new window before its items are published. isNew has the items with a new identity.
	windowRead(ctx context.Context, w *shard.Window, isNew []bool) error
	// itemSettled is called for an identity that was settled. found means that the store had its result.
	itemSettled(res manifest.Result, found bool) error
	// flush is called after the last of several settled identities.
	flush() error
}

// itemSettled tells the hook about a settled identity.
func (r *runner) itemSettled(res manifest.Result, found bool) error {
	if r.items == nil {
		return nil
	}
	return r.items.itemSettled(res, found)
}

// flushItems tells the hook that no identity follows for now.
func (r *runner) flushItems() error {
	if r.items == nil {
		return nil
	}
	return r.items.flush()
}

// place locates an item: the number of its window, and its index among the items of the window.
type place struct{ window, index uint32 }

// windowRead settles the items that have a
// stored result or a settled identity, remembers the places of the other items of pending identities, and reports the
// window.
func (run *Run) windowRead(ctx context.Context, w *shard.Window, isNew []bool) error {
	r := run.runner
	for _, f := range w.Failed {
		run.cfg.Finished(f, false)
	}
	settled := make([]bool, len(w.Items)) // further items of settled identities
	for i, it := range w.Items {
		settled[i] = !isNew[i] && r.ledger.State(it.ID) != ledger.Pending
		if isNew[i] || settled[i] {
			continue
		}
		if k, ok := ledger.ParseIdentity(it.ID); ok {
			run.copies[k] = append(run.copies[k], place{uint32(w.Number), uint32(i)})
		}
	}
	if err := run.announceSettled(ctx, w.Items, settled); err != nil {
		return err
	}
	run.recent = w
	if err := r.settleStored(ctx, w.Items, isNew); err != nil {
		return err
	}
	for i, it := range w.Items {
		if isNew[i] && r.ledger.State(it.ID) == ledger.Pending {
			run.steps += stepsOf(it)
		}
	}
	run.cfg.Read(r.ledger.Items(), run.steps, w.Last)
	return nil
}

// stepsOf returns the number of solver steps of an item, 0 if it is unknown.
func stepsOf(it manifest.Item) int {
	var solver struct {
		Steps int `json:"steps"`
	}
	if json.Unmarshal(it.Solver, &solver) != nil {
		return 0
	}
	return solver.Steps
}

// announceSettled reports the included items. Their identities were settled before the window was read.
func (run *Run) announceSettled(ctx context.Context, items []manifest.Item, include []bool) error {
	r := run.runner
	for begin := 0; begin < len(items); begin += loadChunk {
		chunk := items[begin:min(begin+loadChunk, len(items))]
		found, err := r.load(ctx, chunk, func(i int) bool { return include[begin+i] && r.ledger.State(chunk[i].ID) == ledger.Done })
		if err != nil {
			return err
		}
		for i, it := range chunk {
			if !include[begin+i] {
				continue
			}
			if res, ok := r.settledResult(it, found[i]); ok {
				run.cfg.Finished(res, res.Outcome == manifest.OutcomeDone && r.ledger.WasFound(it.ID))
			}
		}
	}
	return nil
}

// copied is a further item of a settled identity that is not reported yet.
type copied struct {
	place
	result *manifest.Result // shared by the copies
	found  bool
}

// maxCopied is the number of unreported copies above which they are reported.
const maxCopied = 1 << 14

// itemSettled reports a settled identity. It leaves the further items of the identity to flush.
func (run *Run) itemSettled(res manifest.Result, found bool) error {
	run.cfg.Finished(res, found)
	k, ok := ledger.ParseIdentity(res.Item.ID)
	if !ok {
		return nil
	}
	for _, p := range run.copies[k] {
		run.copied = append(run.copied, copied{p, &res, found})
	}
	delete(run.copies, k)
	if len(run.copied) < maxCopied {
		return nil
	}
	return run.flush()
}

// flush reports the further items of all announced identities. It reads each window at most once. The windows
// are on this machine, and an interrupted run reports its settled items too: no context.
func (run *Run) flush() error {
	list := run.copied
	run.copied = nil
	slices.SortFunc(list, func(a, b copied) int { return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.index, b.index)) })
	for _, c := range list {
		if run.recent == nil || run.recent.Number != int(c.window) {
			w, err := run.runner.readWindow(context.Background(), shard.Key(run.runner.id, int(c.window)))
			if err != nil {
				return err
			}
			run.recent = w
		}
		res := *c.result
		res.Item = run.recent.Items[c.index]
		run.cfg.Finished(res, c.found)
	}
	return nil
}
