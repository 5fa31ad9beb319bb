package budget

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// AnyOwner is the key of the quota of owners without one of their own.
const AnyOwner = "*"

// Quotas maps owners to what all their campaigns together may use.
type Quotas map[string]manifest.Budget

// Of returns the quota of an owner. Campaigns without an owner have none.
func (q Quotas) Of(owner string) manifest.Budget {
	b, own := q[owner]
	switch {
	case owner == "":
		return manifest.Budget{}
	case !own:
		return q[AnyOwner]
	}
	return b
}

// Owners knows what the campaigns of each owner have used: those on the board, and those in the archive. Deleted campaigns do not count.
type Owners struct {
	last atomic.Pointer[counted] // nil before the first count
}

// counted is a count.
type counted struct {
	owners    map[string]Used // by index.OwnerDigest
	campaigns map[string]Used // by id
}

// Others returns what the campaigns of an owner except one have used by the last count.
func (o *Owners) Others(owner, except string) Used {
	last := o.last.Load()
	if last == nil {
		return Used{}
	}
	own := last.campaigns[except]
	return last.owners[index.OwnerDigest(owner)].Add(Used{-own.Items, -own.Seconds, -own.Cost})
}

// Watch counts at every interval until ctx ends. It logs errors, and counts the records that it can read.
func (o *Owners) Watch(ctx context.Context, b *queue.Board, s storage.Store, interval time.Duration, logger *slog.Logger) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := o.count(ctx, b, s); err != nil && ctx.Err() == nil {
			logger.Warn("could not count all that owners have used", "reason", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (o *Owners) count(ctx context.Context, b *queue.Board, s storage.Store) error {
	all, skipped, err := board.Campaigns(ctx, b)
	if err != nil {
		return err
	}
	archived, err := index.New(s).All(ctx)
	if err != nil {
		return err
	}
	n := &counted{owners: map[string]Used{}, campaigns: map[string]Used{}}
	add := func(owner, id string, u Used) {
		n.owners[owner], n.campaigns[id] = n.owners[owner].Add(u), u
	}
	for _, c := range all {
		delete(archived, c.Campaign.ID)
		add(index.OwnerDigest(c.Campaign.Owner), c.Campaign.ID, Used{c.Status.Counts.Items, c.Status.Seconds, c.Status.Cost})
	}
	for id, e := range archived {
		if e.State == index.Archived {
			add(e.Row.Owner, id, Used{e.Row.Counts.Items, e.Row.Seconds, e.Row.Cost})
		}
	}
	o.last.Store(n)
	return errors.Join(skipped...)
}
