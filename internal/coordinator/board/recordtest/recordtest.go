// Package recordtest submits and changes campaigns in tests, as another leader does.
package recordtest

import (
	"context"
	"errors"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// Submit submits a campaign. created is false if the store has it.
func Submit(ctx context.Context, b *queue.Board, s storage.Store, spec *manifest.Spec, o board.Order, now time.Time) (c *record.Campaign, created bool, err error) {
	c = board.NewRecord(spec, o, now)
	if err := errors.Join(c.Validate(), index.New(s).Open(ctx, c)); err != nil {
		return nil, false, err
	}
	err = board.NewWriter(b, s).Create(ctx, c)
	if errors.Is(err, storage.ErrExists) {
		c, err = board.Load(ctx, s, c.ID)
		return c, false, err
	}
	return c, true, err
}

// Update changes a record.
func Update(ctx context.Context, b *queue.Board, s storage.Store, id string, change func(c *record.Campaign) error) (*record.Campaign, error) {
	return board.NewWriter(b, s).Change(ctx, id, nil, change)
}

// Want sets the wanted state of a campaign.
func Want(ctx context.Context, b *queue.Board, s storage.Store, id string, w record.Wanted) (*record.Campaign, error) {
	return Update(ctx, b, s, id, board.Wants(w))
}

// SetBudget replaces the budget of a campaign.
func SetBudget(ctx context.Context, b *queue.Board, s storage.Store, id string, limits manifest.Budget) (*record.Campaign, error) {
	return Update(ctx, b, s, id, board.Changes(api.Change{Budget: &limits}))
}

// Administrator returns a copy of ctx in the name of an administrator.
func Administrator(ctx context.Context) context.Context {
	return board.As(ctx, board.Caller{Role: api.Admin, Name: "root"})
}
