package coordinator

import (
	"context"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// place has the parts in which a campaign of a [Service] differs from that of a [Run].
type place struct {
	steps        []step       // from the record to a complete ledger and a sharder
	reading      shard.Config // of the sharder, without the campaign and its models
	settleListed step         // settles the open items that have a result in storage
	finish       step         // ends the campaign when it has no open items
}

// step is a method of a runner.
type step func(r *runner, ctx context.Context) error

// watcher watches the items of a campaign.
type watcher interface {
	// windowRead is called for a new window before its items are published. fresh has the items with a new identity.
	windowRead(ctx context.Context, w *shard.Window, fresh, repeated []item.Item) error
	// itemSettled is called for an identity that was settled. found means that the store had its result.
	itemSettled(res item.Result, found bool)
	// stepped is called between two events.
	stepped(ctx context.Context)
}

// cluster is the place of a campaign of a Service.
var cluster = place{
	steps: []step{
		(*runner).adoptStored, func(r *runner, ctx context.Context) error { return r.status.read(ctx) },
		(*runner).openResults, (*runner).validate,
		func(r *runner, ctx context.Context) error { return r.starts.count(ctx, r.status.last.Complete) },
		(*runner).checkOutput, (*runner).openPrior, (*runner).openOperators, (*runner).checkSpec, (*runner).openParts, (*runner).restoreLedger, (*runner).openSharder,
	},
	settleListed: (*runner).settleFound,
	finish:       func(r *runner, ctx context.Context) error { return r.end(ctx, record.PhaseFinished) },
}

// unwatched is the watcher of a cluster: the results are in the store.
type unwatched struct{}

func (unwatched) windowRead(context.Context, *shard.Window, []item.Item, []item.Item) error {
	return nil
}

func (unwatched) itemSettled(item.Result, bool) {}
func (unwatched) stepped(context.Context)       {}
