package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/serve/listing"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// viewTick is the interval at which a view looks for windows, rounds and parts of the ledger that are new, resultTick that for results.
	viewTick, resultTick = 2 * time.Second, 100 * time.Millisecond
	// readPatience is how long a page waits for results that were not read yet.
	readPatience = time.Second
	// resultReads is the number of results that are read at once, resultChunk that of a pass.
	resultReads, resultChunk = 16, 512
)

// view has the items of one campaign: from the windows, rounds and parts of the ledger in the store, from the outcomes of the queue as they
// arrive, and from the stored results.
type view struct {
	cfg     Config
	id      string
	log     *slog.Logger
	table   *listing.Table
	results storage.Store // the output
	service *lifecycle.Service
	ready   chan struct{} // closed when the table has the states that were stored when the view began

	used  time.Time    // see views
	size  atomic.Int64 // the larger of the rows and those that the record has
	stale atomic.Bool  // the table has windows that are not stored any more

	stored []storage.Info // of the windows in the table; of follow

	last     atomic.Pointer[shard.Window] // see window
	decoding *semaphore.Weighted

	mu     sync.Mutex
	starts []int         // index of the first item of each window
	failed error         // of the last attempt to read what is stored
	ended  chan struct{} // closed when an attempt has failed
}

func newView(ctx context.Context, cfg Config, c *record.Campaign) (*view, error) {
	results, err := storage.NewPrefixed(cfg.Store, c.Output)
	if err != nil {
		return nil, fmt.Errorf("open the output of campaign %s: %w", c.ID, err)
	}
	v := &view{
		cfg: cfg, id: c.ID, log: cfg.Logger.With("campaign", c.ID), table: listing.New(), results: results, ready: make(chan struct{}),
		ended: make(chan struct{}), decoding: semaphore.NewWeighted(1),
	}
	v.service = lifecycle.Go(ctx, v.run)
	return v, nil
}

// errChanged: a window was replaced, by a retry of its unreadable rows, or deleted with its campaign.
var errChanged = errors.New("a stored window has changed")

// run follows the campaign until ctx ends or a window changes. After another error it reads everything that it has in memory but the windows again.
func (v *view) run(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return v.readResults(inner) })
	group.Go(func() error {
		for delays := retry.NewBackOff(viewTick/4, 10*viewTick); ; {
			err := v.follow(inner)
			if errors.Is(err, errChanged) {
				v.stale.Store(true)
				v.fail(err)
				return err
			}
			if err != nil && inner.Err() == nil {
				v.log.Warn("cannot list the items, will retry", "reason", err)
				v.fail(err)
			}
			if err := retry.Sleep(inner, delays.NextBackOff()); err != nil {
				return err
			}
		}
	})
	return group.Wait()
}

// follow enters windows and outcomes until an error.
func (v *view) follow(ctx context.Context) error {
	l := ledger.New()
	windows := 0
	rounds := 0
	parts := -1
	var outcomes <-chan outcome
	var early []outcome // before their window or round was read
	stop := func() {}
	defer func() { stop() }()
	tick := time.NewTicker(viewTick)
	defer tick.Stop()
	for {
		read, err := v.readWindows(ctx, l, windows)
		if err != nil {
			return err
		}
		changed := read > windows
		if windows = read; changed && outcomes != nil {
			v.refresh(l)
		}
		n := 0
		for r, err := range ledger.Rounds(ctx, v.cfg.Store, v.id) {
			if err != nil {
				return err
			}
			if n++; n > rounds {
				l.Begin(r)
				changed = true
			}
		}
		rounds = n
		for _, o := range early {
			changed = enter(l, o) || changed
		}
		found, err := v.countParts(ctx)
		if err != nil {
			return err
		}
		if found != parts || outcomes == nil {
			p := ledger.NewParts(ledger.PartsConfig{Store: v.cfg.Store, Campaign: v.id, Now: v.cfg.Now, Logger: v.log})
			seen, err := p.Enter(ctx, l)
			if err != nil {
				return err
			}
			if parts, changed = found, true; outcomes == nil {
				if outcomes, stop, err = v.openOutcomes(ctx, p, seen); err != nil {
					return err
				}
			}
		}
		if !v.isReady() {
			if err := v.settleListed(ctx, l); err != nil {
				return err
			}
			v.refresh(l)
			close(v.ready)
		} else if changed {
			v.refresh(l)
		}
		if early, err = v.settle(ctx, l, outcomes, tick.C); err != nil {
			return err
		}
	}
}

// settleListed settles the items of a campaign that has ended by one listing of the store: outcomes leave their stream once the ledger has stored them.
func (v *view) settleListed(ctx context.Context, l *ledger.Ledger) error {
	c, err := recordOf(ctx, v.cfg, v.id)
	if err != nil || !c.Phase.Ended() || l.Open() == 0 {
		return err
	}
	for info, err := range v.results.List(ctx, item.ItemsFolder) {
		if err != nil {
			return fmt.Errorf("list results: %w", err)
		}
		if id, ok := item.ResultOf(info.Key); ok && l.Has(id) {
			l.Settle(id, c.Round, ledger.Done, "")
		}
	}
	return nil
}

// outcome is an outcome of the queue, or the error that ended them.
type outcome struct {
	queue.Result
	err error
}

// openOutcomes delivers the outcomes after those that the parts have.
func (v *view) openOutcomes(ctx context.Context, p *ledger.Parts, seen uint64) (<-chan outcome, func(), error) {
	q, err := v.cfg.Inspect(v.id)
	if err != nil {
		return nil, func() {}, err
	}
	stream, last, err := q.ResultStream(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	after := p.Follow(stream, last, seen)
	out := make(chan outcome, 256)
	s := lifecycle.Go(ctx, func(ctx context.Context) error {
		for r, err := range q.Results(ctx, after) {
			select {
			case out <- outcome{r, err}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return ctx.Err()
	})
	return out, s.Stop, nil
}

// settle enters outcomes until the next tick, and returns those that change nothing yet.
func (v *view) settle(ctx context.Context, l *ledger.Ledger, outcomes <-chan outcome, tick <-chan time.Time) (early []outcome, err error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick:
			return early, nil
		case o := <-outcomes:
			switch {
			case o.err != nil:
				return nil, o.err
			case enter(l, o):
				v.table.SetState(o.ID, stateOf(l.State(o.ID)), l.Reason(o.ID))
			default:
				early = append(early, o)
			}
		}
	}
}

// enter enters an outcome, and reports whether it settles an item.
func enter(l *ledger.Ledger, o outcome) bool {
	var e item.Event
	if o.ID == record.IDPreflight || o.ID == record.IDFault || json.Unmarshal(o.Payload, &e) != nil {
		return false
	}
	return l.Settle(o.ID, o.Round, ledger.StateOf(e.Outcome), e.Reason) > 0
}

// stateOf returns a state of the ledger as one of the API.
func stateOf(s ledger.State) api.State {
	return [...]api.State{ledger.Pending: api.StatePending, ledger.Done: api.StateDone, ledger.Failed: api.StateFailed, ledger.Dead: api.StateDead}[s]
}

// refresh brings the states of the ledger into the table.
func (v *view) refresh(l *ledger.Ledger) {
	v.table.Refresh(func(id string) (api.State, string) { return stateOf(l.State(id)), l.Reason(id) })
}

func (v *view) isReady() bool {
	select {
	case <-v.ready:
		return true
	default:
		return false
	}
}

func (v *view) countParts(ctx context.Context) (n int, err error) {
	for _, err := range v.cfg.Store.List(ctx, "campaigns/"+v.id+"/ledger/") {
		if err != nil {
			return 0, fmt.Errorf("list ledger: %w", err)
		}
		n++
	}
	return n, nil
}

// storedWindow is a window, nil if it was entered before, and the version that is stored.
type storedWindow struct {
	info   storage.Info
	window *shard.Window
}

// readWindows enters the windows from a number on into the ledger, and those that are new into the table. It returns the number of windows,
// or errChanged.
func (v *view) readWindows(ctx context.Context, l *ledger.Ledger, from int) (int, error) {
	first := shard.Key(v.id, from)
	listed := 0
	for s, err := range storage.Each(ctx, v.cfg.Store, shard.Prefix(v.id), func(ctx context.Context, info storage.Info) (s storedWindow, err error) {
		s.info = info
		if info.Key >= first {
			s.window, err = shard.Read(ctx, v.cfg.Store, info.Key)
		}
		return s, err
	}) {
		if err != nil {
			return from, err
		}
		if listed < len(v.stored) && !sameVersion(s.info, v.stored[listed]) {
			return from, errChanged
		}
		listed++
		w := s.window
		if w == nil {
			continue
		}
		items := slices.Clone(w.Items)
		for _, it := range w.Items {
			l.Add(it.ID)
		}
		for _, f := range w.Failed {
			items = append(items, f.Item)
			l.Add(f.Item.ID)
			l.Settle(f.Item.ID, 0, ledger.Failed, f.Reason)
		}
		slices.SortFunc(items, func(a, b item.Item) int { return a.Index - b.Index })
		v.mu.Lock()
		isNew := from == len(v.starts)
		if isNew {
			v.starts = append(v.starts, w.Item)
			v.size.Store(max(v.size.Load(), int64(w.Item+len(items))))
		}
		v.mu.Unlock()
		if size := v.size.Load(); size > maxRows {
			return from, errTooMany(v.id, int(size))
		}
		if isNew {
			v.table.Add(items)
			v.stored = append(v.stored, s.info)
		}
		from++
	}
	if listed < len(v.stored) {
		return from, errChanged
	}
	return from, nil
}

func sameVersion(a, b storage.Info) bool {
	return a.Key == b.Key && a.Size == b.Size && a.Modified.Equal(b.Modified)
}

// readResults reads the results of done items until ctx ends.
func (v *view) readResults(ctx context.Context) error {
	for from := 0; ; {
		ids, next := v.table.Unread(from, resultChunk)
		if err := v.enterResults(ctx, ids); err != nil && ctx.Err() == nil {
			v.log.Warn("cannot read results for the list of items, will retry", "reason", err)
			if err := retry.Sleep(ctx, viewTick); err != nil {
				return err
			}
		}
		if from = next; from >= v.table.Len() {
			from = 0
			if err := retry.Sleep(ctx, resultTick); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// enterResults reads results into the table. A missing or damaged one keeps its row without values.
func (v *view) enterResults(ctx context.Context, ids []string) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(resultReads)
	for _, id := range ids {
		group.Go(func() error {
			data, err := v.results.Get(inner, item.Key(id, item.FileResult))
			if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrCorrupt) {
				return err
			}
			var r item.Result
			if err == nil && json.Unmarshal(data, &r) == nil && r.Item.ID == id {
				v.table.SetResult(&r)
			} else if known, ok := v.table.Find(id); ok && v.table.Item(known).State == api.StateDone {
				v.table.SetUnreadable(id)
			}
			return nil
		})
	}
	return group.Wait()
}

// fail gives those that wait for the table the error of an attempt to read it.
func (v *view) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = fmt.Errorf("%w: the stored items of campaign %s cannot be read: %w; they are read again until that succeeds", api.ErrStore, v.id, err)
	close(v.ended)
	v.ended = make(chan struct{})
}

// await waits for the table, or returns why the last attempt to read it has failed.
func (v *view) await(ctx context.Context) error {
	v.mu.Lock()
	failed, ended := v.failed, v.ended
	v.mu.Unlock()
	switch {
	case v.isReady():
		return nil
	case failed != nil:
		return failed
	}
	select {
	case <-v.ready:
		return nil
	case <-ended:
		return v.await(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// query returns a page of a view that is ready. It reads the results of the page's items that were not read yet.
func (v *view) query(ctx context.Context, q api.ItemQuery) (api.Items, error) {
	page, err := v.table.Query(q)
	// What sorts or filters by results waits a moment for them, unless they are few beside the others.
	for end := time.Now().Add(readPatience); err == nil && q.NeedsResults() && page.Done-page.Read > page.Done/50 && time.Now().Before(end); {
		if err = retry.Sleep(ctx, readPatience/50); err == nil {
			page, err = v.table.Query(q)
		}
	}
	if err != nil {
		return page, err
	}
	unread := page.Unread
	if len(unread) == 0 {
		return page, nil
	}
	if err := v.enterResults(ctx, unread); err != nil {
		return page, err
	}
	for i := range page.Items {
		page.Items[i] = v.table.Item(page.Items[i].Index)
	}
	page.Read = min(page.Done, page.Read+len(unread))
	return page, nil
}

// item returns an item of the manifest.
func (v *view) item(ctx context.Context, id string) (row api.Item, it item.Item, err error) {
	index, ok := v.table.Find(id)
	if !ok {
		return row, it, api.NewError(api.ErrNotFound, fmt.Sprintf("campaign %s has no item %s", v.id, id))
	}
	v.mu.Lock()
	number, found := slices.BinarySearch(v.starts, index)
	v.mu.Unlock()
	if !found {
		number--
	}
	w, err := v.window(ctx, number)
	if err != nil {
		return row, it, err
	}
	for _, it := range w.Items {
		if it.ID == id {
			return v.table.Item(index), it.Public(), nil
		}
	}
	for _, f := range w.Failed {
		if f.Item.ID == id {
			return v.table.Item(index), f.Item.Public(), nil
		}
	}
	return row, it, api.NewError(api.ErrNotFound, fmt.Sprintf("the manifest of campaign %s has changed; read its items again", v.id))
}

// window returns a stored window. It keeps the last one, because whoever reads an item reads its neighbours next, and decoding takes longer the more
// items there are; so one request decodes at a time.
func (v *view) window(ctx context.Context, number int) (*shard.Window, error) {
	if w := v.last.Load(); w != nil && w.Number == number {
		return w, nil
	}
	if err := v.decoding.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer v.decoding.Release(1)
	if w := v.last.Load(); w != nil && w.Number == number { // by another request
		return w, nil
	}
	w, err := shard.Read(ctx, v.cfg.Store, shard.Key(v.id, number))
	if err == nil {
		v.last.Store(w)
	}
	return w, err
}

// recordOf returns the record of a campaign, without a return from the archive, or queue.ErrNoRecord.
func recordOf(ctx context.Context, cfg Config, id string) (*record.Campaign, error) {
	c, err := board.Read(ctx, cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		c, err = board.Load(ctx, cfg.Store, id)
	}
	if errors.Is(err, storage.ErrNotFound) {
		err = queue.ErrNoRecord
	}
	return c, err
}
