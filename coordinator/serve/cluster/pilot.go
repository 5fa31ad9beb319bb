package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/storage"
)

const (
	// pilotLimit limits the search for measured items.
	pilotLimit = 3 * time.Second
	// pilotCampaigns is the number of campaigns that are searched, the newest first, pilotSamples the number of results that are read for a plan.
	pilotCampaigns = 50
	pilotSamples   = 16
	// beatAge is the age of the heartbeat of a worker that is gone.
	beatAge = 30 * time.Second
)

// measured is the mean of some results, of a campaign. Without samples nothing was found.
type measured struct {
	seconds  float64
	samples  int
	campaign string
}

// estimate returns what items of a valid campaign would take. Rows counts the rows by the task that they name; the items of others, which
// have parameters of their own, are unknown.
func (c *Cluster) estimate(ctx context.Context, spec *manifest.Spec, rows map[string]int, others int) (*api.Estimate, error) {
	items := map[manifest.Plan]int{}
	for task, n := range rows {
		for p, each := range manifest.Plans(manifest.Row{Overrides: manifest.Overrides{Task: task}}, spec) {
			items[p] += n * each
		}
	}
	if len(items) == 0 || others > 0 || c.cfg.Store == nil {
		return &api.Estimate{Unknown: []string{"images or parameters that differ from row to row"}}, nil
	}
	found, err := c.measure(ctx, slices.Collect(maps.Keys(items)))
	if err != nil {
		return nil, err
	}
	out, seconds := &api.Estimate{}, 0.0
	for p, n := range items {
		m := found[p]
		if m.samples == 0 {
			out.Unknown = append(out.Unknown, p.Task+" by "+p.Method)
			continue
		}
		seconds += float64(n) * m.seconds
		out.Samples += m.samples
		out.Campaigns = append(out.Campaigns, m.campaign)
	}
	slices.Sort(out.Unknown)
	slices.Sort(out.Campaigns)
	out.Unknown, out.Campaigns = slices.Compact(out.Unknown), slices.Compact(out.Campaigns)
	if len(out.Unknown) > 0 {
		return out, nil
	}
	out.Seconds = &seconds
	if c.cfg.Price > 0 {
		cost := seconds * c.cfg.Price
		out.Cost = &cost
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

// measure returns what items of plans have taken in earlier campaigns, as far as it finds it in time.
func (c *Cluster) measure(ctx context.Context, plans []manifest.Plan) (map[manifest.Plan]measured, error) {
	open, found := map[manifest.Plan]bool{}, map[manifest.Plan]measured{}
	for _, p := range plans {
		open[p] = true
	}
	limited, cancel := context.WithTimeout(ctx, pilotLimit)
	defer cancel()
	err := c.search(limited, open, found)
	if ctx.Err() == nil && limited.Err() != nil {
		err = nil
	}
	return found, err
}

// search looks for results of plans, and moves those from open to found that it finds.
func (c *Cluster) search(ctx context.Context, open map[manifest.Plan]bool, found map[manifest.Plan]measured) error {
	all, _, err := board.Campaigns(ctx, c.cfg.Board)
	if err != nil {
		return err
	}
	archived, err := index.New(c.cfg.Store).All(ctx)
	if err != nil {
		return err
	}
	searched := 0
	for _, s := range slices.Backward(all) {
		delete(archived, s.Campaign.ID)
		if searched++; searched <= pilotCampaigns && len(open) > 0 {
			if err := c.searchOne(ctx, s.Campaign, open, found); err != nil {
				return err
			}
		}
	}
	newest := slices.SortedFunc(maps.Values(archived), func(a, b index.Entry) int { return b.Row.Finished.Compare(a.Row.Finished) })
	for _, e := range newest {
		if e.State != index.Archived {
			continue
		}
		if searched++; searched > pilotCampaigns || len(open) == 0 {
			return nil
		}
		record, err := board.Load(ctx, c.cfg.Store, e.ID)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, board.ErrDamaged) {
			continue
		}
		if err == nil {
			err = c.searchOne(ctx, record, open, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// searchOne looks for results of plans in one campaign.
func (c *Cluster) searchOne(ctx context.Context, record *manifest.Campaign, open map[manifest.Plan]bool, found map[manifest.Plan]measured) error {
	plans := manifest.Plans(manifest.Row{}, &record.Spec)
	type name struct{ task, method string }
	named := map[name]int{}
	for p := range plans {
		named[name{p.Task, p.Method}]++
	}
	// An item has the names of its plan only.
	maps.DeleteFunc(plans, func(p manifest.Plan, _ int) bool { return !open[p] || named[name{p.Task, p.Method}] > 1 })
	if len(plans) == 0 || record.Items == 0 {
		return nil
	}
	w, err := shard.Read(ctx, c.cfg.Store, shard.Key(record.ID, 0))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	results, err := storage.NewPrefixed(c.cfg.Store, record.Output)
	if err != nil {
		return err
	}
	for p := range plans {
		var ids []string
		for _, it := range w.Items {
			if it.Task == p.Task && it.Method == p.Method {
				ids = append(ids, it.ID)
			}
		}
		m, err := sample(ctx, results, ids[:min(len(ids), pilotSamples)])
		if err != nil {
			return err
		}
		if m.samples > 0 {
			m.campaign = record.ID
			found[p] = m
			delete(open, p)
		}
	}
	return nil
}

// sample returns the mean device-seconds of those items that are done.
func sample(ctx context.Context, results storage.Store, ids []string) (m measured, err error) {
	seconds := make([]float64, len(ids))
	group, inner := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() error {
			data, err := results.Get(inner, manifest.ItemKey(id, manifest.FileResult))
			if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrCorrupt) {
				return nil
			}
			var r manifest.Result
			if err == nil && json.Unmarshal(data, &r) == nil {
				seconds[i] = r.Seconds
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return m, err
	}
	for _, s := range seconds {
		if s > 0 {
			m.seconds, m.samples = m.seconds+s, m.samples+1
		}
	}
	m.seconds /= float64(max(m.samples, 1))
	return m, nil
}
