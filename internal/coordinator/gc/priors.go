package gc

import (
	"context"
	"errors"
	"fmt"

	"ddiff/api"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/storage"
)

// collectPriors deletes the priors and operator files that no campaign uses. It deletes none while a campaign is open: its prior may not be
// known yet.
//
// A campaign may be submitted during the deletion, and its coordinator may find a prior in the store just before it is
// deleted. collectPriors therefore reads the records again after each deletion and stores the file again if it is in use.
// If it crashes in between, the coordinator copies the file again from the campaign's path when it opens the campaign.
func (c *Cleaner) collectPriors(ctx context.Context) ([]api.Removal, error) {
	r := api.Removal{Kind: "priors", Name: "unused"}
	var candidates []storage.Info
	for info, err := range c.Store.List(ctx, record.PriorsFolder) {
		if err != nil {
			return nil, fmt.Errorf("list priors: %w", err)
		}
		if c.now().Sub(info.Modified) >= priorAge {
			candidates = append(candidates, info)
		}
	}
	for _, info := range candidates {
		used, err := c.usedPriors(ctx)
		if err != nil {
			return nil, fmt.Errorf("collect priors: %w", err)
		}
		if used == nil || used[info.Key] {
			continue
		}
		if !c.DryRun {
			if restored, err := c.deletePrior(ctx, info.Key); err != nil {
				return []api.Removal{r}, fmt.Errorf("delete prior: %w", err)
			} else if restored {
				continue
			}
		}
		r.Objects++
		r.Bytes += info.Size
	}
	if r.Objects == 0 {
		return nil, nil
	}
	return []api.Removal{r}, nil
}

// deletePrior deletes a prior. restored means that a campaign began to use it meanwhile.
func (c *Cleaner) deletePrior(ctx context.Context, key string) (restored bool, err error) {
	data, err := c.Store.Get(ctx, key)
	if err != nil {
		return false, err
	}
	if err := c.Store.Delete(ctx, key); err != nil {
		return false, err
	}
	used, err := c.usedPriors(context.WithoutCancel(ctx))
	if err == nil && used != nil && !used[key] {
		return false, nil
	}
	if e := c.Store.Create(context.WithoutCancel(ctx), key, data); !errors.Is(e, storage.ErrExists) {
		err = errors.Join(err, e)
	}
	return true, err
}

// usedPriors returns the keys of the priors and operator files of all campaigns, or nil while a campaign is open, which may be about to begin.
func (c *Cleaner) usedPriors(ctx context.Context) (map[string]bool, error) {
	entries, err := index.New(c.Store).All(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for id, e := range entries {
		if e.State == index.Open {
			return nil, nil
		}
		if e.State != index.Deleting {
			ids = append(ids, id)
		}
	}
	records, err := c.records(ctx, ids, storage.ErrNotFound) // without a record it has not begun
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, r := range records {
		used[r.Prior.Key] = true
		for _, f := range r.Operators {
			used[f.Key] = true
		}
	}
	return used, nil
}
