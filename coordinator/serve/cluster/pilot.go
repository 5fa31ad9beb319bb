package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
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
	// pilotLimit limits the search for measured items, pilotAge is how long its answers count.
	pilotLimit = 3 * time.Second
	pilotAge   = time.Minute
	// pilotCampaigns is the number of campaigns that are searched, the newest first, pilotSamples the number of results that are read for a plan.
	pilotCampaigns = 50
	pilotSamples   = 16
	// beatAge is the age of the heartbeat of a worker that is gone.
	beatAge = 30 * time.Second
)

// pilot has measured device-seconds of items.
type pilot struct {
	mu    sync.Mutex
	known map[manifest.Plan]measured
}

// measured is the mean of some results, of a campaign. Without samples nothing was found.
type measured struct {
	seconds  float64
	samples  int
	campaign string
	at       time.Time
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

// measure returns what items of plans have taken in earlier campaigns.
func (c *Cluster) measure(ctx context.Context, plans []manifest.Plan) (map[manifest.Plan]measured, error) {
	found, open := c.pilot.lookup(plans, c.cfg.Now())
	if len(open) == 0 {
		return found, nil
	}
	limited, cancel := context.WithTimeout(ctx, pilotLimit)
	defer cancel()
	err := c.search(limited, open, found)
	if ctx.Err() != nil || err != nil && limited.Err() == nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	for p := range open {
		found[p] = measured{at: c.cfg.Now()}
	}
	c.pilot.mu.Lock()
	defer c.pilot.mu.Unlock()
	maps.Copy(c.pilot.known, found)
	return found, nil
}

// lookup returns the known answers to plans, and the plans without one.
func (p *pilot) lookup(plans []manifest.Plan, now time.Time) (found map[manifest.Plan]measured, open map[manifest.Plan]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.known, func(_ manifest.Plan, m measured) bool { return now.Sub(m.at) > pilotAge })
	found, open = map[manifest.Plan]measured{}, map[manifest.Plan]bool{}
	for _, plan := range plans {
		if m, known := p.known[plan]; known {
			found[plan] = m
		} else {
			open[plan] = true
		}
	}
	return found, open
}

// search looks for results of plans, and moves those from open to found that it finds.
func (c *Cluster) search(ctx context.Context, open map[manifest.Plan]bool, found map[manifest.Plan]measured) error {
	records, err := c.recent(ctx)
	if err != nil {
		return err
	}
	for _, load := range records {
		if len(open) == 0 {
			return nil
		}
		record, err := load()
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, board.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.searchOne(ctx, record, open, found); err != nil {
			return err
		}
	}
	return nil
}

// recent returns functions that load the records of the newest campaigns, those of the board first.
func (c *Cluster) recent(ctx context.Context) ([]func() (*manifest.Campaign, error), error) {
	all, _, err := board.Campaigns(ctx, c.cfg.Board)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	archived, err := index.New(c.cfg.Store).All(ctx)
	if err != nil {
		return nil, err
	}
	var out []func() (*manifest.Campaign, error)
	for _, s := range all {
		delete(archived, s.Campaign.ID)
		out = append(out, func() (*manifest.Campaign, error) { return s.Campaign, nil })
	}
	newest := slices.SortedFunc(maps.Values(archived), func(a, b index.Entry) int { return b.Row.Finished.Compare(a.Row.Finished) })
	for _, e := range newest {
		if e.State == index.Archived {
			out = append(out, func() (*manifest.Campaign, error) { return board.Load(ctx, c.cfg.Store, e.ID) })
		}
	}
	return out[:min(len(out), pilotCampaigns)], nil
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
			m.campaign, m.at = record.ID, c.cfg.Now()
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
