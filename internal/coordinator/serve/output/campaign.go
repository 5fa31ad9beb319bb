package output

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/serve/listing"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/internal/report/result"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// campaign is one output as a campaign.
type campaign struct {
	id       string
	output   result.Output
	announce func()
	table    *listing.Table
	begun    time.Time // of a run in this process

	reading sync.Mutex // held by a search

	mu      sync.Mutex
	version uint64
	states  map[string]item.Outcome // by the item's id
	lost    map[string]item.Result  // items that failed or are dead
	counts  record.Counts           // Items is that of a run in progress
	record  record.Campaign
	problem string
	recent  []time.Time // when the last items settled
	read    bool        // all items are known
	live    bool        // a run in this process reports
}

func newCampaign(id string, o result.Output, announce func()) *campaign {
	return &campaign{
		id: id, output: o, announce: announce, table: listing.New(), read: true,
		states: make(map[string]item.Outcome), lost: make(map[string]item.Result),
		record: record.Campaign{ID: id, Spec: manifest.Spec{Name: id}, Output: redact.Address(o.Address), Wanted: record.WantRun, Phase: record.PhaseFinished},
	}
}

// refresh looks for results that are not known. A run in this process reports its own.
func (c *campaign) refresh(ctx context.Context) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live {
		return nil
	}
	known := func(id string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.states[id] == item.OutcomeDone
	}
	var found []item.Result
	for r, err := range result.Results(ctx, []result.Output{{Address: c.output.Address, Store: newResults{c.output.Store, known}}}) {
		if err != nil {
			return err
		}
		r.Log = nil // it is read again with the item
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b item.Result) int {
		return cmp.Or(cmp.Compare(a.Item.Index, b.Item.Index), cmp.Compare(a.Item.ID, b.Item.ID))
	})
	news := false
	for _, r := range found {
		news = c.add(r) || news
	}
	c.mu.Lock()
	news = news || c.problem != ""
	c.problem = ""
	c.mu.Unlock()
	if news {
		c.moved()
	}
	return nil
}

// add enters a result and reports whether it is new.
func (c *campaign) add(r item.Result) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.states[r.Item.ID]
	if known && (before == r.Outcome || before == item.OutcomeDone) { // a list of failures is older than a result
		return false
	}
	if !known {
		c.table.Add([]item.Item{r.Item})
	} else {
		c.count(before, -1)
	}
	c.count(r.Outcome, 1)
	c.states[r.Item.ID] = r.Outcome
	delete(c.lost, r.Item.ID)
	if r.Outcome == item.OutcomeDone {
		c.table.SetResult(&r)
	} else {
		c.table.SetState(r.Item.ID, api.State(r.Outcome), r.Reason)
		c.lost[r.Item.ID] = r
	}
	if t := r.Finished; !c.live && !t.IsZero() {
		if c.record.Submitted.IsZero() || t.Before(c.record.Submitted) {
			c.record.Submitted = t
		}
		if t.After(c.record.Finished) {
			c.record.Finished = t
		}
	}
	return true
}

func (c *campaign) count(o item.Outcome, n int) {
	switch o {
	case item.OutcomeDone:
		c.counts.Done += n
	case item.OutcomeFailed:
		c.counts.Failed += n
	case item.OutcomeDead:
		c.counts.Dead += n
	}
}

// moved tells those that watch of a change.
func (c *campaign) moved() {
	c.mu.Lock()
	c.version++
	c.mu.Unlock()
	c.announce()
}

func (c *campaign) changes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *campaign) setProblem(err error) {
	c.mu.Lock()
	same := c.problem == err.Error()
	c.problem = err.Error()
	c.mu.Unlock()
	if !same {
		c.moved()
	}
}

// rateOver is the time over which the rate is the mean.
const rateOver = 30 * time.Second

func (c *campaign) status() record.CampaignStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.record
	s := record.Status{ID: c.id, Phase: now.Phase, At: time.Now().UTC(), Problem: c.problem, Complete: c.read, Reason: now.Reason, Counts: c.counts}
	settled := c.counts.Done + c.counts.Failed + c.counts.Dead
	s.Counts.Items = max(c.counts.Items, settled)
	s.Counts.Pending = s.Counts.Items - settled
	if now.Phase.Ended() {
		return record.CampaignStatus{Campaign: &now, Status: s}
	}
	s.Workers = 1
	c.recent = slices.DeleteFunc(c.recent, func(t time.Time) bool { return time.Since(t) > rateOver })
	if len(c.recent) > 0 {
		s.Rate = float64(len(c.recent)) / min(rateOver, max(time.Second, time.Since(now.Submitted))).Seconds()
		s.Left = float64(s.Counts.Pending) / s.Rate
	}
	return record.CampaignStatus{Campaign: &now, Status: s}
}

// result reads the result of an item. stored is its file, if the item is done.
func (c *campaign) result(ctx context.Context, id string) (r item.Result, row api.Item, stored []byte, err error) {
	index, ok := c.table.Find(id)
	if !ok {
		return r, row, nil, api.NewError(api.ErrNotFound, c.id+" has no item "+id)
	}
	row = c.table.Item(index)
	c.mu.Lock()
	lost, ok := c.lost[id]
	c.mu.Unlock()
	if ok {
		return lost, row, nil, nil
	}
	stored, err = c.output.Store.Get(ctx, item.Key(id, item.FileResult))
	if err == nil {
		err = json.Unmarshal(stored, &r)
	}
	if err != nil {
		return r, row, nil, fmt.Errorf("read the result of item %s: %w", id, err)
	}
	return r, row, stored, nil
}

// Live is a run in this process, which reports its progress. Its methods may be called concurrently.
type Live struct {
	*Backend
	campaign *campaign
}

// NewLive returns the backend of a run that begins.
func NewLive(spec *manifest.Spec, o result.Output) *Live {
	b := &Backend{changed: make(chan struct{})}
	c := newCampaign(spec.ID(""), o, b.announce)
	c.record.Spec = *spec
	c.begun = time.Now().UTC()
	c.record.Phase, c.record.Submitted = record.PhaseRunning, c.begun
	c.live, c.read = true, false
	b.campaigns = append(b.campaigns, c)
	return &Live{Backend: b, campaign: c}
}

// Entered reports the number of items that were read so far, and whether these are all.
func (l *Live) Entered(items int, complete bool) {
	c := l.campaign
	c.mu.Lock()
	c.counts.Items, c.read = items, complete
	c.mu.Unlock()
	c.moved()
}

// Settled reports an item in its final state.
func (l *Live) Settled(r item.Result) {
	c := l.campaign
	if !c.add(r) {
		return
	}
	if r.Finished.After(c.begun) { // else an earlier run restored it
		c.mu.Lock()
		c.recent = append(c.recent, time.Now())
		c.mu.Unlock()
	}
	c.moved()
}

// Ended reports the end of the run. Its report is written.
func (l *Live) Ended(err error) {
	c := l.campaign
	c.mu.Lock()
	c.record.Phase, c.record.Finished = record.PhaseFinished, time.Now().UTC()
	if err != nil {
		c.record.Phase, c.record.Reason = record.PhaseCancelled, err.Error()
	}
	c.mu.Unlock()
	c.moved()
}
