package gpuworker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ddiff/manifest"
	"ddiff/restore/noise"
	"ddiff/storage"
)

// Simulation makes workers hold each item for a drawn time instead of computing it, to load a
// cluster without a device. All else is done: an item's result is looked for, result.json is
// written and published, the lease is extended and acknowledged. No file of an item is read,
// and no artifact written. Several workers may share one Simulation.
type Simulation struct {
	// Mean is the mean time per item. Times are uniform between half of it and one and a
	// half, drawn by the item's id: each worker holds an item equally long.
	Mean time.Duration

	mu    sync.Mutex
	spans map[*Worker]*span
	pulls []time.Duration
	items int
}

// span is when a worker was busy.
type span struct {
	first, last time.Time
	held        time.Duration
}

// SimulationReport is what a simulation has measured.
type SimulationReport struct {
	// Workers is how many held an item, Items how many items they held.
	Workers, Items int
	// Busy is the share of time in which a worker held an item, from its first to its last.
	Busy float64
	// P50 and P99 are quantiles of the time that a pull took which found items.
	P50, P99 time.Duration
}

// time is how long an item is held.
func (s *Simulation) time(id string) time.Duration {
	u := noise.NewStream(noise.NewKey(sha256.Sum256([]byte("simulate "+id))), noise.Start).Uniform()
	return time.Duration((0.5 + u) * float64(s.Mean))
}

func (s *Simulation) pulled(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulls = append(s.pulls, took)
}

func (s *Simulation) held(w *Worker, from, to time.Time, items int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spans == nil {
		s.spans = map[*Worker]*span{}
	}
	if s.spans[w] == nil {
		s.spans[w] = &span{first: from}
	}
	s.spans[w].last = to
	s.spans[w].held += to.Sub(from)
	s.items += items
}

// Report is what was measured so far.
func (s *Simulation) Report() SimulationReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := SimulationReport{Workers: len(s.spans), Items: s.items}
	var held, there time.Duration
	for _, w := range s.spans {
		held += w.held
		there += w.last.Sub(w.first)
	}
	if there > 0 {
		r.Busy = held.Seconds() / there.Seconds()
	}
	if n := len(s.pulls); n > 0 {
		sorted := slices.Sorted(slices.Values(s.pulls))
		r.P50, r.P99 = sorted[n/2], sorted[n*99/100]
	}
	return r
}

// simulate takes the place of solve.
func (w *Worker) simulate(drain context.Context, b batch) error {
	var hold time.Duration
	for _, t := range b.tasks {
		hold += w.cfg.Simulate.time(t.item.ID)
	}
	defer w.leases.begin(hold + w.cfg.StageLimit)()
	ctx, stop := b.tasks[0].on.until(drain)
	defer stop()
	begin := w.cfg.Now()
	pause(ctx, hold)
	if err := ctx.Err(); err != nil {
		return err
	}
	end := w.cfg.Now()
	w.cfg.Simulate.held(w, begin, end, len(b.tasks))
	for _, t := range b.tasks {
		t.seconds, t.batch = end.Sub(begin).Seconds()/float64(len(b.tasks)), len(b.tasks)
	}
	return nil
}

// writeSimulated takes the place of write.
func (w *Worker) writeSimulated(ctx context.Context, t *task) (manifest.Result, error) {
	res := w.result(t, manifest.OutcomeDone, "")
	res.Seconds, res.Batch = t.seconds, t.batch
	data, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return res, fmt.Errorf("write result: %w", err)
	}
	err = t.on.Store.Create(ctx, manifest.ItemKey(t.item.ID, manifest.FileResult), append(data, '\n'))
	if errors.Is(err, storage.ErrExists) {
		return t.existing(ctx)
	}
	if err != nil {
		return res, fmt.Errorf("write result: %w", err)
	}
	return res, nil
}
