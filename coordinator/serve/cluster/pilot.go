package cluster

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/storage"
)

const (
	// pilotLimit limits the search for a campaign with the same work, pilotCampaigns the number of campaigns that are searched, the newest first.
	pilotLimit     = 3 * time.Second
	pilotCampaigns = 50
	// beatAge is the age of the heartbeat of a worker that is gone.
	beatAge = 30 * time.Second
)

// estimate returns what items of a valid campaign would take: each as long as those of the newest campaign with the same work.
func (c *Cluster) estimate(ctx context.Context, spec *manifest.Spec, items int) (*api.Estimate, error) {
	out, work := &api.Estimate{}, spec.Work()
	if work == "" || c.cfg.Store == nil {
		return out, nil
	}
	limited, cancel := context.WithTimeout(ctx, pilotLimit)
	defer cancel()
	searched := 0
	for s, err := range c.newest(limited) {
		if limited.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			return out, err
		}
		if done := s.Status.Counts.Done; done > 0 && s.Status.Seconds > 0 && s.Campaign.Spec.Work() == work {
			seconds := s.Status.Seconds / float64(done) * float64(items)
			out.Seconds, out.Samples, out.Campaign = &seconds, done, s.Campaign.ID
			break
		}
		if searched++; searched == pilotCampaigns {
			break
		}
	}
	if out.Seconds == nil {
		return out, nil
	}
	if c.cfg.Price > 0 {
		out.Cost = new(*out.Seconds * c.cfg.Price)
	}
	all, err := c.Workers(ctx)
	for _, b := range all.Workers {
		pool := cmp.Or(b.Pool, manifest.DefaultPool)
		if c.cfg.Now().Sub(b.At) < beatAge && !b.Draining && (spec.Pool == "" || spec.Pool == pool) {
			out.Workers++
		}
	}
	return out, err
}

// newest yields the campaigns of the board, the newest first, and then those of the archive, which end with the one that ended first.
func (c *Cluster) newest(ctx context.Context) iter.Seq2[manifest.CampaignStatus, error] {
	return func(yield func(manifest.CampaignStatus, error) bool) {
		all, _, err := board.Campaigns(ctx, c.cfg.Board)
		if err != nil {
			yield(manifest.CampaignStatus{}, err)
			return
		}
		onBoard := map[string]bool{}
		for _, s := range slices.Backward(all) {
			if onBoard[s.Campaign.ID] = true; !yield(s, nil) {
				return
			}
		}
		archived, err := index.New(c.cfg.Store).All(ctx)
		if err != nil {
			yield(manifest.CampaignStatus{}, err)
			return
		}
		for _, e := range slices.SortedFunc(maps.Values(archived), func(a, b index.Entry) int { return b.Row.Finished.Compare(a.Row.Finished) }) {
			if e.State != index.Archived || onBoard[e.ID] {
				continue
			}
			record, err := board.Load(ctx, c.cfg.Store, e.ID)
			if errors.Is(err, storage.ErrNotFound) || errors.Is(err, board.ErrDamaged) {
				continue
			}
			if !yield(manifest.CampaignStatus{Campaign: record, Status: manifest.Status{Counts: e.Row.Counts, Seconds: e.Row.Seconds}}, err) || err != nil {
				return
			}
		}
	}
}
