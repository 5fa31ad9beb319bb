// Package output is the backend of the page over outputs, directories or buckets, of finished runs and of runs in progress. It reads only.
//
// Each output is one campaign. [New] reads its results; while a page watches, the backend looks for further ones. A run in this process
// reports its progress through [Live] instead.
package output

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"strings"
	"sync"
	"time"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Backend implements serve.Backend over outputs.
type Backend struct {
	campaigns []*campaign

	mu      sync.Mutex
	changed chan struct{} // closed at a change of a campaign
}

// New reads the results of outputs. A damaged result is an error that names it.
func New(ctx context.Context, outputs []result.Output) (*Backend, error) {
	b := &Backend{changed: make(chan struct{})}
	for _, o := range outputs {
		c := newCampaign(b.freeID(o.Address), o, b.announce)
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
		b.campaigns = append(b.campaigns, c)
	}
	return b, nil
}

// maxID is the length of an id without a number after it.
const maxID = 56

// freeID makes an id of the last name in an address, which no other campaign has.
func (b *Backend) freeID(address string) string {
	address, _, _ = strings.Cut(address, "?")
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(path.Base(strings.TrimRight(address, "/"))))
	base = strings.Trim(base[:min(len(base), maxID)], "-")
	if base == "" {
		base = "output"
	}
	id := base
	for n := 2; b.find(id) != nil; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	return id
}

func (b *Backend) find(id string) *campaign {
	for _, c := range b.campaigns {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (b *Backend) campaign(id string) (*campaign, error) {
	if c := b.find(id); c != nil {
		return c, nil
	}
	return nil, api.NewError(api.ErrNotFound, "there is no output "+id)
}

// announce wakes those that watch.
func (b *Backend) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Backend) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Campaigns lists the outputs.
func (b *Backend) Campaigns(context.Context, bool) (api.Campaigns, error) {
	list := api.Campaigns{Campaigns: []record.CampaignStatus{}}
	for _, c := range b.campaigns {
		list.Campaigns = append(list.Campaigns, c.status())
	}
	return list, nil
}

// Campaign returns an output as a campaign.
func (b *Backend) Campaign(_ context.Context, id string) (record.CampaignStatus, error) {
	c, err := b.campaign(id)
	if err != nil {
		return record.CampaignStatus{}, err
	}
	return c.status(), nil
}

// Items returns a page of the items of an output.
func (b *Backend) Items(_ context.Context, id string, q api.ItemQuery) (api.Items, error) {
	c, err := b.campaign(id)
	if err != nil {
		return api.Items{}, err
	}
	return c.table.Query(q)
}

// Throughput counts the results of an output over time.
func (b *Backend) Throughput(_ context.Context, id string) (api.Throughput, error) {
	c, err := b.campaign(id)
	if err != nil {
		return api.Throughput{}, err
	}
	return c.table.Throughput(), nil
}

// Item returns an item with its result and its files.
func (b *Backend) Item(ctx context.Context, id, it string) (api.ItemDetail, error) {
	c, err := b.campaign(id)
	if err != nil {
		return api.ItemDetail{}, err
	}
	r, row, stored, err := c.result(ctx, it)
	if err != nil {
		return api.ItemDetail{}, err
	}
	detail := api.ItemDetail{Item: row, Settings: r.Item, Result: stored, Files: []api.File{}}
	folder := item.Key(it, "")
	for info, err := range c.output.Store.List(ctx, folder) {
		if err != nil {
			return api.ItemDetail{}, fmt.Errorf("list the files of item %s: %w", it, err)
		}
		detail.Files = append(detail.Files, api.File{Name: strings.TrimPrefix(info.Key, folder), Bytes: info.Size})
	}
	return detail, nil
}

// Logs returns the last attempts, as far as the results have their lines.
func (b *Backend) Logs(ctx context.Context, id, item string) (api.Logs, error) {
	c, err := b.campaign(id)
	if err != nil {
		return api.Logs{}, err
	}
	logs := api.Logs{Attempts: []record.AttemptLog{}}
	if item == "" {
		return logs, nil
	}
	r, _, _, err := c.result(ctx, item)
	if err != nil {
		return api.Logs{}, err
	}
	r.Attempt = max(1, r.Attempt)
	logs.Attempts = append(logs.Attempts, record.AttemptOf(&r))
	return logs, nil
}

// Workers lists none.
func (b *Backend) Workers(context.Context) (api.Workers, error) {
	return api.Workers{Workers: []record.Beat{}}, nil
}

// Cluster describes none.
func (b *Backend) Cluster(context.Context) (api.Cluster, error) {
	return api.Cluster{Coordinators: []record.CoordinatorBeat{}, Streams: []api.Stream{}, Queues: []api.Queue{}}, nil
}

// refreshEvery is the least interval between two searches for new results, refreshShare the largest share of the time that they take.
const (
	refreshEvery = 2 * time.Second
	refreshShare = 20
)

// Watch yields the states of the outputs, one event of kind ready, and the changes.
func (b *Backend) Watch(ctx context.Context) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		seen := make(map[string]uint64)
		var id uint64
		news := func() bool {
			for _, c := range b.campaigns {
				version := c.changes()
				if seen[c.id] == version+1 {
					continue
				}
				seen[c.id] = version + 1
				s := c.status()
				for kind, record := range map[string]any{api.EventCampaign: s.Campaign, api.EventStatus: s.Status} {
					data, err := json.Marshal(record)
					id++
					if !yield(api.Event{ID: id, Kind: kind, Key: c.id, Data: data}, err) {
						return false
					}
				}
			}
			return true
		}
		if !news() || !yield(api.Event{ID: id, Kind: api.EventReady}, nil) {
			return
		}
		wait := refreshEvery
		for {
			next := b.change()
			if !news() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-next:
			case <-time.After(wait):
				begun := time.Now()
				for _, c := range b.campaigns {
					if err := c.refresh(ctx); err != nil && ctx.Err() == nil {
						c.setProblem(err)
					}
				}
				wait = max(refreshEvery, refreshShare*time.Since(begun))
			}
		}
	}
}

// newResults hides the stored results that are known from a search.
type newResults struct {
	store interface {
		Get(ctx context.Context, key string) ([]byte, error)
		List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
	}
	known func(id string) bool
}

// Get returns an object.
func (n newResults) Get(ctx context.Context, key string) ([]byte, error) {
	return n.store.Get(ctx, key)
}

// List lists objects without the known results.
func (n newResults) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range n.store.List(ctx, prefix) {
			if id, isResult := item.ResultOf(info.Key); err == nil && isResult && n.known(id) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Output returns an output.
func (b *Backend) Output(_ context.Context, id string) (result.Output, error) {
	c, err := b.campaign(id)
	if err != nil {
		return result.Output{}, err
	}
	return c.output, nil
}
