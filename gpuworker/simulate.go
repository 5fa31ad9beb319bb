package gpuworker

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"sync"
	"time"

	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/noise"
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
	waits histogram // of the lease requests that returned items
	items int
}

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
	// P50 and P99 are quantiles, within 1 %, of the duration of the lease requests that returned items.
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
	r := SimulationReport{Workers: len(s.spans), Items: s.items, P50: s.waits.quantile(0.50), P99: s.waits.quantile(0.99)}
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

// simulator is the dispatcher, restorer and checker of a simulated worker.
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
		s.simulation.waits.add(s.cfg.Now().Sub(begin))
	}
	return a, leases, err
}

func (s *simulator) check(context.Context, *task) (manifest.Checked, error) {
	return manifest.Checked{
		Worker: s.cfg.Name, Checks: []manifest.Check{{Name: "simulated", Found: "this worker computes nothing"}},
	}, nil
}

func (s *simulator) prepare(ctx context.Context, t *task) (*manifest.Result, error) {
	return s.fetch(ctx, t, func(context.Context) error { return nil })
}

// solve holds all tasks for the sum of their times.
func (s *simulator) solve(drain context.Context, tasks []*task) (int, error) {
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
		return n, err
	}
	end := s.cfg.Now()
	s.record(begin, end, n)
	for _, t := range tasks {
		t.seconds, t.batch = end.Sub(begin).Seconds()/float64(n), n
	}
	return n, nil
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
func (s *simulator) finish(t *task) (*manifest.Result, error) {
	res := s.result(t, manifest.OutcomeDone, "")
	res.Seconds, res.Batch = t.seconds, t.batch
	err := s.stage(t, telemetry.StageWrite, s.cfg.Limits.Finish, func(ctx context.Context) error {
		err := t.createResult(ctx, res)
		if errors.Is(err, storage.ErrExists) {
			res, err = t.readExisting(ctx)
		}
		return err
	})
	return res, err
}

const (
	// bucketWidth is the ratio of the bounds of a histogram's bucket. Its geometric mean is within 1 % of both bounds.
	bucketWidth = 1.02
	// bucketCount buckets cover 1 µs to 1.1 h.
	bucketCount = 1116
)

// histogram counts durations in buckets of equal ratio. The zero value is empty.
type histogram struct {
	counts [bucketCount]int
	total  int
}

func (h *histogram) add(d time.Duration) {
	microseconds := max(float64(d)/float64(time.Microsecond), 1)
	h.counts[min(int(math.Log(microseconds)/math.Log(bucketWidth)), bucketCount-1)]++
	h.total++
}

// quantile returns the duration of rank q·n within 1 %, for durations in the range of the buckets, or 0 without any.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.total))
	for i, n := range h.counts {
		if rank -= n; rank < 0 {
			return time.Duration(math.Pow(bucketWidth, float64(i)+0.5) * float64(time.Microsecond))
		}
	}
	return 0
}
