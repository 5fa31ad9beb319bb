package gc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/failure"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

// Cleaner deletes data from the store of a cluster: campaigns with Delete, garbage with Collect. It deletes nothing of a
// campaign that has not ended, and no result that another campaign of the cluster refers to. Both calls are idempotent;
// after a crash the next call completes the deletion.
type Cleaner struct {
	// Store is the cluster's store, with the permission to delete.
	Store storage.Store
	// Board is the cluster's board, for Delete. Without a board, only campaigns in the archive can be deleted. Collect does not use it: a
	// campaign of the board has an open entry in the index before it has files.
	Board *queue.Board
	// Archive moves a campaign that has ended from the board to the archive. Required with a board.
	Archive func(ctx context.Context, id string) error
	// DryRun reports what would be deleted, and changes nothing.
	DryRun bool
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// ErrNoIndex: a coordinator of this version has not used the store yet. Without its index of campaigns, a Cleaner cannot
// know which data are in use.
var ErrNoIndex = failure.New(failure.Server, "the store has no index of campaigns; start ddiff coordinator of this version once")

const (
	// removeParallel is the number of concurrent deletions.
	removeParallel = 16
	// checkEvery is the number of deleted results after which a deletion looks for new campaigns of the output.
	checkEvery = 1000
	// secondLook is the pause before a record that the store calls missing is read again.
	secondLook = 2 * time.Second
)

func (c *Cleaner) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// checkIndex returns ErrNoIndex for a store with an incomplete index.
func (c *Cleaner) checkIndex(ctx context.Context) error {
	_, err := c.Store.Stat(ctx, index.KeyComplete)
	if errors.Is(err, storage.ErrNotFound) {
		return ErrNoIndex
	}
	return err
}

// onBoard reports whether the board has the record of a campaign; without a board it is false.
func (c *Cleaner) onBoard(ctx context.Context, id string) (bool, error) {
	if c.Board == nil {
		return false, nil
	}
	_, _, err := c.Board.Get(ctx, record.KeyCampaignPrefix+id)
	if errors.Is(err, queue.ErrNoRecord) {
		return false, nil
	}
	return err == nil, err
}

// campaigns returns the campaigns of the board, and the newest index entries of the others; without a board, those of all.
func (c *Cleaner) campaigns(ctx context.Context) (onBoard []*record.Campaign, others map[string]index.Entry, err error) {
	others, err = index.New(c.Store).All(ctx)
	if err != nil || c.Board == nil {
		return nil, others, err
	}
	all, skipped, err := board.Campaigns(ctx, c.Board)
	for _, s := range all {
		onBoard = append(onBoard, s.Campaign)
		delete(others, s.Campaign.ID)
	}
	return onBoard, others, errors.Join(append(skipped, err)...)
}

// load reads the stored record of a campaign. A missing record lets data go, so one answer of the store does not suffice.
func (c *Cleaner) load(ctx context.Context, id string) (*record.Campaign, error) {
	r, err := board.Load(ctx, c.Store, id)
	if !errors.Is(err, storage.ErrNotFound) {
		return r, err
	}
	if err := retry.Sleep(ctx, secondLook); err != nil {
		return nil, err
	}
	return board.Load(ctx, c.Store, id)
}

// records reads the stored records of campaigns. It skips those whose error is one of skip.
func (c *Cleaner) records(ctx context.Context, ids []string, skip ...error) ([]*record.Campaign, error) {
	records := make([]*record.Campaign, len(ids))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(removeParallel)
	for i, id := range ids {
		group.Go(func() (err error) {
			records[i], err = c.load(inner, id)
			if slices.ContainsFunc(skip, func(e error) bool { return errors.Is(err, e) }) {
				return nil
			}
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(records, func(r *record.Campaign) bool { return r == nil }), err
}

// objects is a listing.
type objects = iter.Seq2[storage.Info, error]

// remove deletes the listed objects, and counts them. It calls check, which may be nil, regularly, and ends with its
// error.
func (c *Cleaner) remove(ctx context.Context, kind, name string, listing objects, check func() error) (api.Removal, error) {
	r := api.Removal{Kind: kind, Name: name}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(removeParallel)
	var listErr error
	for info, err := range listing {
		if err == nil && check != nil && r.Objects%checkEvery == 0 && !c.DryRun {
			err = check()
		}
		if err != nil {
			listErr = err
			break
		}
		r.Objects++
		r.Bytes += info.Size
		if c.DryRun {
			continue
		}
		group.Go(func() error { return c.Store.Delete(inner, info.Key) })
	}
	if err := errors.Join(listErr, group.Wait()); err != nil {
		return r, fmt.Errorf("delete the %s of %s: %w", kind, name, err)
	}
	return r, nil
}

// list lists the objects below a prefix that include selects, all for nil.
func (c *Cleaner) list(ctx context.Context, prefix string, include func(info storage.Info) bool) objects {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range c.Store.List(ctx, prefix) {
			if err == nil && include != nil && !include(info) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// only lists the object with a key, if it exists.
func (c *Cleaner) only(ctx context.Context, key string) objects {
	return c.list(ctx, key, func(info storage.Info) bool { return info.Key == key })
}

// outputKey returns a key of an output.
func outputKey(output, key string) string { return strings.TrimSuffix(output, "/") + "/" + key }
