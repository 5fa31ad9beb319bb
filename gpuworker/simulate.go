package gpuworker

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/noise"
	"ddiff/internal/retry"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// Simulation makes workers hold each item for a drawn time instead of computing, to load a cluster without a device.
// Leases, result events, acknowledgements, the search for existing results and result.json are real. A simulated worker
// reads no file of an item, and writes no artifact. Workers may share a Simulation, whose memory does not grow with the
// number of items.
type Simulation struct {
	// Mean is the mean time per item. Times are uniform from half of it to one and a half, drawn by the item's id, so
	// that all workers hold an item equally long.
	Mean time.Duration

	mu    sync.Mutex
	spans map[*simulator]*busySpan
	waits []time.Duration // of the last lease requests that returned items
	asked int             // number of these requests
	items int
}

// maxWaits is the number of lease requests whose duration a Simulation remembers.
const maxWaits = 100_000

// busySpan is the time in which one worker was busy.
type busySpan struct {
	first, last time.Time
	busy        time.Duration
}

// SimulationReport is the measurement of a Simulation.
type SimulationReport struct {
	// Workers is the number of workers that held an item, Items the number of items that were held.
	Workers, Items int
	// Busy is the share of time in which a worker held an item, between its first and its last item.
	Busy float64
	// P50 and P99 are quantiles of the duration of the last maxWaits lease requests that returned items.
	P50, P99 time.Duration
}

// duration returns the time for which an item is held.
func (s *Simulation) duration(id string) time.Duration {
	u := noise.NewStream(noise.NewKey(sha256.Sum256([]byte("simulate "+id))), noise.Start).Uniform()
	return time.Duration((0.5 + u) * float64(s.Mean))
}

// Report returns the measurements so far.
func (s *Simulation) Report() SimulationReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := SimulationReport{Workers: len(s.spans), Items: s.items}
	if waits := slices.Sorted(slices.Values(s.waits)); len(waits) > 0 {
		r.P50, r.P99 = waits[len(waits)/2], waits[len(waits)*99/100]
	}
	var busy, total time.Duration
	for _, span := range s.spans {
		busy += span.busy
		total += span.last.Sub(span.first)
	}
	if total > 0 {
		r.Busy = busy.Seconds() / total.Seconds()
	}
	return r
}

// simulator is the dispatcher and restorer of a simulated worker.
type simulator struct {
	*core
	simulation *Simulation
}

// Next measures the configured dispatcher.
func (s *simulator) Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error) {
	begin := s.cfg.Now()
	a, leases, err := s.cfg.Work.Next(ctx, wait)
	if len(leases) > 0 {
		s.simulation.mu.Lock()
		defer s.simulation.mu.Unlock()
		s.simulation.wait(s.cfg.Now().Sub(begin))
	}
	return a, leases, err
}

// wait records the duration of a lease request in place of the oldest. The caller holds the mutex.
func (s *Simulation) wait(d time.Duration) {
	if len(s.waits) < maxWaits {
		s.waits = append(s.waits, d)
	} else {
		s.waits[s.asked%maxWaits] = d
	}
	s.asked++
}

func (s *simulator) check(context.Context, *task) (record.Checked, error) {
	return record.Checked{
		Worker: s.cfg.Name, Checks: []record.Check{{Name: "simulated", Found: "this worker computes nothing"}},
	}, nil
}

func (s *simulator) prepare(ctx context.Context, t *task) (*item.Result, error) {
	return s.fetch(ctx, t, func(context.Context) error { return nil })
}

func (s *simulator) size(tasks []*task) int { return len(tasks) }

// solve holds all tasks for the sum of their times.
func (s *simulator) solve(drain context.Context, tasks []*task) error {
	n, hold := len(tasks), time.Duration(0)
	for _, t := range tasks {
		hold += s.simulation.duration(t.Item.ID)
	}
	ctx, stop := tasks[0].assigned.withLifetime(drain)
	defer stop()
	a := s.watchdog.Begin(ctx, telemetry.StageRestore, hold+s.cfg.Limits.Solve, tasks[:n]...)
	defer a.End()
	begin := s.cfg.Now()
	if err := retry.Sleep(a.Ctx, hold); err != nil {
		return err
	}
	end := s.cfg.Now()
	s.record(begin, end, n)
	for _, t := range tasks {
		t.Seconds, t.Batch = end.Sub(begin).Seconds()/float64(n), n
	}
	return nil
}

func (s *simulator) record(begin, end time.Time, items int) {
	all := s.simulation
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.spans == nil {
		all.spans = map[*simulator]*busySpan{}
	}
	if all.spans[s] == nil {
		all.spans[s] = &busySpan{first: begin}
	}
	all.spans[s].last = end
	all.spans[s].busy += end.Sub(begin)
	all.items += items
}

// finish writes result.json without metrics and artifacts.
func (s *simulator) finish(t *task) (*item.Result, error) {
	res := s.result(t, item.OutcomeDone, "")
	res.Batch = t.Batch
	err := s.stage(t, telemetry.StageWrite, s.cfg.Limits.Finish, func(ctx context.Context) error {
		err := t.createResult(ctx, res)
		if errors.Is(err, storage.ErrExists) {
			res, err = t.readExisting(ctx)
		}
		return err
	})
	return res, err
}
