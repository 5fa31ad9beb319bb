package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// maxRows is the number of items in all views, some 200 bytes each.
	maxRows = 1 << 20
	// viewAge is the time after its last use at which a view ends.
	viewAge = 10 * time.Minute
)

// errTooMany is the error of a campaign that is too large for a view.
func errTooMany(id string, items int) error {
	return api.NewError(api.ErrRefused, fmt.Sprintf("campaign %s has %d items; lists have campaigns of up to %d", id, items, maxRows))
}

// views has the views of the campaigns that were used last, with up to maxRows items.
type views struct {
	cfg  Config
	ctx  context.Context //nolint:containedctx // of the views, which outlive the requests
	end  context.CancelFunc
	mu   sync.Mutex
	byID map[string]*view
}

func newViews(cfg Config) *views {
	ctx, end := context.WithCancel(context.Background())
	return &views{cfg: cfg, ctx: ctx, end: end, byID: map[string]*view{}}
}

// record returns the record of a campaign, without a return from the archive.
func (vs *views) record(ctx context.Context, id string) (*record.Campaign, error) {
	c, err := recordOf(ctx, vs.cfg, id)
	return c, unknown(id, err)
}

func (vs *views) close() {
	vs.end()
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for _, v := range vs.byID {
		v.service.Stop()
	}
}

// get returns the view of a campaign once its table is ready, and ends those that were used least. It asks once more if a window has changed meanwhile.
func (vs *views) get(ctx context.Context, id string) (v *view, err error) {
	for range 2 {
		if v, err = vs.find(ctx, id); err != nil {
			return nil, err
		}
		if err = v.await(ctx); !errors.Is(err, errChanged) {
			break
		}
	}
	return v, err
}

// find returns the view of a campaign, which may have just begun.
func (vs *views) find(ctx context.Context, id string) (*view, error) {
	if v, err := vs.use(id, nil); v != nil || err != nil {
		return v, err
	}
	s, err := board.Status(ctx, vs.cfg.Board, id) // without the lock: board and store may be slow
	if errors.Is(err, queue.ErrNoRecord) {
		if s.Campaign, err = vs.record(ctx, id); err == nil {
			s, err = board.JoinStatus(s.Campaign, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	if n := s.Status.Counts.Items; n > maxRows {
		return nil, errTooMany(id, n)
	}
	return vs.use(id, s.Campaign)
}

// use returns the view of a campaign, or begins one of the record c, if it is not nil.
func (vs *views) use(id string, c *record.Campaign) (v *view, err error) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	now := vs.cfg.Now()
	if v = vs.byID[id]; v != nil && v.stale.Load() {
		delete(vs.byID, id)
		go v.service.Stop() // it has ended, or is about to
		v = nil
	}
	if v == nil {
		if c == nil {
			return nil, nil
		}
		if v, err = newView(vs.ctx, vs.cfg, c); err != nil {
			return nil, err
		}
		vs.byID[id] = v
	}
	v.used = now
	vs.evict(v, now)
	return v, nil
}

// evict ends the views that were not used for long, and the oldest while there are too many rows. It keeps one view.
func (vs *views) evict(keep *view, now time.Time) {
	rows := int64(0)
	for _, v := range vs.byID {
		rows += v.size.Load()
	}
	for _, v := range slices.SortedFunc(maps.Values(vs.byID), func(a, b *view) int { return a.used.Compare(b.used) }) {
		if v == keep || rows <= maxRows && now.Sub(v.used) < viewAge {
			continue
		}
		delete(vs.byID, v.id)
		rows -= v.size.Load()
		go v.service.Stop() // it ends soon, and Close has ended its context
	}
}

// Items returns a page of the items of a campaign.
func (c *Cluster) Items(ctx context.Context, id string, q api.ItemQuery) (api.Items, error) {
	v, err := c.views.get(ctx, id)
	if err != nil {
		return api.Items{}, err
	}
	return v.query(ctx, q)
}

// Throughput counts the results of a campaign over time.
func (c *Cluster) Throughput(ctx context.Context, id string) (api.Throughput, error) {
	v, err := c.views.get(ctx, id)
	if err != nil {
		return api.Throughput{}, err
	}
	return v.table.Throughput(), nil
}

// Item returns an item with its result and its files.
func (c *Cluster) Item(ctx context.Context, id, it string) (out api.ItemDetail, err error) {
	v, err := c.views.get(ctx, id)
	if err != nil {
		return out, err
	}
	if err := v.enterResults(ctx, []string{it}); err != nil {
		return out, err
	}
	if out.Item, out.Settings, err = v.item(ctx, it); err != nil {
		return out, err
	}
	out.Files = []api.File{}
	folder := item.Key(it, "")
	for info, err := range v.results.List(ctx, folder) {
		if err != nil {
			return out, fmt.Errorf("list the files of item %s: %w", it, err)
		}
		out.Files = append(out.Files, api.File{Name: info.Key[len(folder):], Bytes: info.Size})
	}
	data, err := v.results.Get(ctx, item.Key(it, item.FileResult))
	if errors.Is(err, storage.ErrNotFound) {
		return out, nil
	}
	out.Result = data
	return out, err
}

// Output returns the output of a campaign.
func (c *Cluster) Output(ctx context.Context, id string) (result.Output, error) {
	campaign, err := c.views.record(ctx, id)
	if err != nil {
		return result.Output{}, err
	}
	if err := campaign.CheckOutput(); err != nil { // the coordinator rejects such a campaign, but its record remains
		return result.Output{}, api.NewError(api.ErrNotFound, "campaign "+id+" has no files: "+err.Error())
	}
	store, err := storage.NewPrefixed(c.cfg.Store, campaign.Output)
	if err != nil {
		return result.Output{}, fmt.Errorf("open the output of campaign %s: %w", id, err)
	}
	return result.Output{Address: campaign.Output, Store: store}, nil
}
