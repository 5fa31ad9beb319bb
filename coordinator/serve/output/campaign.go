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
	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// campaign is one output as a campaign.
type campaign struct {
	id       string
	output   result.Output
	announce func()

	reading sync.Mutex // held by a search

	mu      sync.Mutex
	version uint64
	rows    []api.Item     // in the order in which they were found
	row     map[string]int // by the item's id
	lost    map[string]manifest.Result
	record  manifest.Campaign
	problem string
	first   time.Time
	recent  []time.Time // when the last items settled
	items   int         // of the campaign in progress; 0: those found
	done    bool        // all rows were read
	live    bool        // a run in this process reports
}

func newCampaign(id string, o result.Output, announce func()) *campaign {
	return &campaign{
		id: id, output: o, announce: announce, row: make(map[string]int), lost: make(map[string]manifest.Result), done: true,
		record: manifest.Campaign{ID: id, Spec: manifest.Spec{Name: id}, Output: o.Address, Wanted: manifest.WantRun, Phase: manifest.PhaseFinished},
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
		i, ok := c.row[id]
		return ok && c.rows[i].State == api.StateDone
	}
	found := false
	for r, err := range result.Results(ctx, []result.Output{{Address: c.output.Address, Store: newResults{c.output.Store, known}}}) {
		if err != nil {
			return err
		}
		found = c.add(r) || found
	}
	c.mu.Lock()
	found = found || c.problem != ""
	c.problem = ""
	c.mu.Unlock()
	if found {
		c.moved()
	}
	return nil
}

// add enters a result and reports whether it is new.
func (c *campaign) add(r manifest.Result) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	item := itemOf(&r)
	i, known := c.row[item.ID]
	switch {
	case !known:
		c.row[item.ID] = len(c.rows)
		c.rows = append(c.rows, item)
	case c.rows[i].State == item.State || c.rows[i].State == api.StateDone: // a list of failures is older than a result
		return false
	default:
		c.rows[i] = item
	}
	delete(c.lost, item.ID)
	if item.State != api.StateDone {
		c.lost[item.ID] = r
	}
	if !r.Finished.IsZero() {
		if c.first.IsZero() || r.Finished.Before(c.first) {
			c.first = r.Finished
		}
		if !c.live && r.Finished.After(c.record.Finished) {
			c.record.Finished = r.Finished
		}
	}
	return true
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

// status counts the items.
func (c *campaign) status() manifest.CampaignStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.record
	record.Submitted = cmp.Or(record.Submitted, c.first)
	s := manifest.Status{ID: c.id, Phase: record.Phase, At: time.Now().UTC(), Problem: c.problem, Complete: c.done, Reason: record.Reason}
	for _, r := range c.rows {
		switch r.State {
		case api.StateDone:
			s.Counts.Done++
		case api.StateFailed:
			s.Counts.Failed++
		default:
			s.Counts.Dead++
		}
	}
	s.Counts.Items = max(c.items, len(c.rows))
	s.Counts.Pending = s.Counts.Items - len(c.rows)
	if record.Phase.Ended() {
		return manifest.CampaignStatus{Campaign: &record, Status: s}
	}
	s.Workers = 1
	c.recent = slices.DeleteFunc(c.recent, func(t time.Time) bool { return time.Since(t) > rateOver })
	if len(c.recent) > 0 {
		s.Rate = float64(len(c.recent)) / min(rateOver, max(time.Second, time.Since(record.Submitted))).Seconds()
		s.Left = float64(s.Counts.Pending) / s.Rate
	}
	return manifest.CampaignStatus{Campaign: &record, Status: s}
}

// result reads the result of an item.
func (c *campaign) result(ctx context.Context, id string) (manifest.Result, api.Item, error) {
	c.mu.Lock()
	i, ok := c.row[id]
	var row api.Item
	if ok {
		row = c.rows[i]
	}
	r, lost := c.lost[id]
	c.mu.Unlock()
	switch {
	case !ok:
		return r, row, fmt.Errorf("%w: %s has no item %s", api.ErrNotFound, c.id, id)
	case lost:
		return r, row, nil
	}
	data, err := c.output.Store.Get(ctx, manifest.ItemKey(id, manifest.FileResult))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, row, fmt.Errorf("read the result of item %s: %w", id, err)
	}
	return r, row, nil
}

// dead lists the dead items, the oldest first.
func (c *campaign) dead() (api.DeadLetters, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	letters := api.DeadLetters{Dead: []api.DeadLetter{}}
	for id, r := range c.lost {
		if r.Outcome != manifest.OutcomeDead {
			continue
		}
		work, err := json.Marshal(r.Item)
		if err != nil {
			return letters, fmt.Errorf("encode item %s: %w", id, err)
		}
		letters.Dead = append(letters.Dead, api.DeadLetter{
			ID: id, Reason: r.Reason, Attempts: r.Attempt, Worker: r.Worker, TraceID: r.TraceID, Log: r.Log, Buried: r.Finished, Item: work,
		})
	}
	slices.SortFunc(letters.Dead, func(a, b api.DeadLetter) int { return cmp.Or(a.Buried.Compare(b.Buried), cmp.Compare(a.ID, b.ID)) })
	return letters, nil
}

// itemOf is the row of a result.
func itemOf(r *manifest.Result) api.Item {
	item := api.Item{
		ID: r.Item.ID, Index: r.Item.Index, Name: r.Item.Name, Task: r.Item.Task, Method: r.Item.Method, Run: r.Item.Run, State: api.State(r.Outcome),
		Reason: r.Reason, Seconds: float32(r.Seconds), Worker: r.Worker, Metrics: make(map[string]float32),
	}
	m := &r.Metrics
	for name, v := range map[string]*float64{
		"psnr": m.PSNR, "ssim": m.SSIM, "psnr_y": m.PSNRLuma, "haarpsi": m.HaarPSI, "residual": m.Residual,
		"baseline_psnr": m.BaselinePSNR, "baseline_ssim": m.BaselineSSIM,
	} {
		if v != nil {
			item.Metrics[name] = float32(*v)
		}
	}
	for _, s := range r.Scores {
		if s.Value != nil {
			item.Metrics[manifest.MetricName(s.Metric)] = float32(*s.Value)
		}
	}
	for _, w := range r.Warnings {
		item.Warnings = append(item.Warnings, w.Code)
	}
	return item
}
