package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/raster"
	"ddiff/internal/retry"
	"ddiff/restore/item"
)

// Worker restores items until it drains. Create it with New.
type Worker struct {
	*core
	work      dispatcher
	campaigns campaigns // Config.Work, nil if it dispatches one campaign
	restorer  restorer
	stats     stats
	settled   chan struct{}      // receives after an item ended
	beating   atomic.Bool        // a Beacon runs
	trial     chan chan struct{} // a preflight begins; the Beacon closes the channel after its next heartbeat
	breaker   *guard.Breaker[*task]
	decoding  *raster.Budget
	passAgain time.Time // no item is passed before; of the goroutine that leases
	started   time.Time
}

// core is the part of a Worker that it shares with its restorer.
type core struct {
	cfg      Config
	leases   *leaseSet
	watchdog *guard.Watchdog[*task]
	device   chan struct{} // holds an element while a batch, a preflight or a probe uses the device and the engines' solvers
	checks   atomic.Int32  // preflights and probes that wait for the device or use it
	solving  atomic.Pointer[record.Solving]
}

// restorer carries out the stages of items: engineRestorer with an engine, simulator by waiting.
type restorer interface {
	// prepare loads an item. If the item has a result, prepare returns it, and the item needs no more stages.
	prepare(ctx context.Context, t *task) (*item.Result, error)
	// size is the number of tasks, from the start of those that are left and have equal plans, to solve next: 1 or more.
	size(left []*task) int
	// solve restores a batch. After an error none of its items is restored.
	solve(ctx context.Context, batch []*task) error
	// finish scores a restored item and stores its result.
	finish(t *task) (*item.Result, error)
	// probe tests the device with a short solve of the last good item, or without one of the failed item.
	probe(ctx context.Context, failed *task, good *item.Item) error
	// check runs the checks of a preflight up to the first that fails, and also returns the error of that check.
	check(ctx context.Context, t *task) (record.Checked, error)
}

// stats are the figures of a worker's heartbeat, see [Worker.Beat].
type stats struct {
	settled  atomic.Int64
	draining atomic.Bool
	campaign atomic.Value // string
	// logRefused: the store has refused the record of an attempt.
	logRefused atomic.Bool
	unsettled  unsettled
}

// New checks the configuration.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure worker: %w", err)
	}
	cfg = cfg.withDefaults()
	if cfg.Tuner == nil {
		cfg.Tuner = tuner.New(cfg.Logger)
	}
	c := &core{cfg: cfg, leases: newLeaseSet(cfg), watchdog: guard.NewWatchdog[*task](cfg.Limits, cfg.Now, cfg.Logger),
		device: make(chan struct{}, 1)}
	w := &Worker{core: c, work: cfg.Work, restorer: engineRestorer{c}, settled: make(chan struct{}, 1), trial: make(chan chan struct{}, 1), started: cfg.Now().UTC()}
	w.campaigns, _ = cfg.Work.(campaigns)
	w.breaker, w.decoding = guard.NewBreaker[*task](cfg.Now, cfg.ProbePause), raster.NewBudget(job.DecodeMemory())
	if cfg.Simulate != nil {
		s := &simulator{core: c, simulation: cfg.Simulate}
		w.work, w.restorer = s, s
	}
	w.stats.campaign.Store("")
	return w, nil
}

// Held returns the number of items that the worker holds.
func (w *Worker) Held() int { return w.leases.count() }

// Run processes items until ctx ends, which drains the worker, or until Config.Once has passed without work, or until
// the queue or the device fails permanently. After a drain all leases are settled or released, and Run returns nil.
//
// When a stage hangs, the worker drains and Run returns guard.ErrHung, or ErrStuck if the stage still runs: then the leases expire. See
// Limits. A Worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	w.watchdog.OnHang(drain)
	defer context.AfterFunc(ctx, func() {
		w.stats.draining.Store(true)
		w.watchdog.SetDraining()
	})()
	// Leases are extended until the last one is released.
	beside := context.WithoutCancel(ctx)
	defer lifecycle.Go(beside, func(ctx context.Context) error { return w.leases.run(ctx, w.watchdog.Active) }).Stop()
	defer lifecycle.Go(beside, w.watchdog.Run).Stop()
	ended := make(chan error, 1)
	go func() { ended <- w.runStages(ctx) }() // ends before Run, unless a stage is stuck
	select {
	case err := <-ended:
		return errors.Join(err, w.watchdog.Failure())
	case <-w.watchdog.Stuck:
		return fmt.Errorf("%w: %w", guard.ErrStuck, w.watchdog.Failure())
	}
}

// finishedBatches is the number of batches that are scored and stored at a time: the files of an item take longer to a distant store than its batch on a GPU.
const finishedBatches = 2

// runStages runs the stages until the worker has drained.
func (w *Worker) runStages(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx) // when one stage fails, the others drain
	prepared := make(chan []*task)
	restored := make(chan []*task)
	group.Go(func() error {
		defer close(prepared)
		return w.lease(ctx, prepared)
	})
	group.Go(func() error {
		defer close(restored)
		for tasks := range prepared {
			if err := w.restore(ctx, tasks, restored); err != nil {
				return err
			}
		}
		return nil
	})
	for range finishedBatches {
		group.Go(func() error {
			var errs error
			for tasks := range restored {
				errs = errors.Join(errs, inParallel(tasks, func(t *task) error {
					res, err := w.restorer.finish(t)
					return w.settle(ctx, t, outcomeOf(t.ctx, t, err), res)
				}))
			}
			return errs
		})
	}
	return errors.Join(group.Wait(), w.releaseAll(ctx))
}

// lease leases items, prepares them, and sends them to out in groups.
func (w *Worker) lease(ctx context.Context, out chan<- []*task) error {
	defer w.breaker.Stop()
	busy := w.cfg.Now()
	for ctx.Err() == nil {
		if err := w.awaitEnvironment(ctx); err != nil {
			return err
		}
		a, leases, err := w.work.Next(ctx, w.cfg.Idle)
		if err != nil && ctx.Err() == nil {
			if err := w.pauseAfter(ctx, err); err != nil {
				return err
			}
		}
		switch {
		case len(leases) > 0:
			if err := w.startLeases(ctx, a, leases, out); err != nil {
				return err
			}
			busy = w.cfg.Now()
		case w.leases.count() > 0:
			busy = w.cfg.Now()
		case w.cfg.Once > 0 && w.cfg.Now().Sub(busy) >= w.cfg.Once:
			w.cfg.Logger.Info("no more work", "idle", w.cfg.Once)
			return nil
		}
	}
	return nil
}

// pauseAfter waits before the next lease request when err is transient, and returns err otherwise.
func (w *Worker) pauseAfter(ctx context.Context, err error) error {
	if !errors.Is(err, queue.ErrNotReady) && !errors.Is(err, queue.ErrUnavailable) {
		if !w.cfg.TolerateQueueErrors || errors.Is(err, queue.ErrClosed) {
			return fmt.Errorf("lease work: %w", err)
		}
		w.cfg.Logger.Warn("could not lease work, will retry", "reason", err)
	}
	_ = retry.Sleep(ctx, w.cfg.Idle) // the caller checks ctx
	return nil
}

// announce waits until a heartbeat names the campaign whose preflight begins, which may end the worker; at most for the interval of heartbeats.
func (w *Worker) announce(ctx context.Context) {
	if !w.beating.Load() {
		return
	}
	published := make(chan struct{})
	select {
	case w.trial <- published:
	default: // the heartbeat before this one is late already
		return
	}
	select {
	case <-published:
	case <-time.After(beatInterval):
	case <-ctx.Done():
	}
}

// prepareAll prepares the items of one assignment and sends them to out.
func (w *Worker) prepareAll(ctx context.Context, a Assignment, leases []*queue.Lease, out chan<- []*task) error {
	w.stats.campaign.Store(a.Campaign)
	if leases[0].Class() == record.ClassPreflight {
		w.announce(ctx)
	}
	in := newAssigned(a, len(leases), w.decoding, w.cfg.SolveMemory)
	tasks := make([]*task, len(leases))
	for i, l := range leases {
		tasks[i] = w.start(ctx, in, l)
	}
	w.leases.add(tasks) // all, because preparing takes time
	var mu sync.Mutex
	ready := map[*task]bool{}
	err := inParallel(tasks, func(t *task) error { // a GPU solves a batch faster than one core prepares it
		res, err := w.prepare(ctx, t)
		if err != nil || res != nil {
			return w.settle(ctx, t, outcomeOf(ctx, t, err), res)
		}
		mu.Lock()
		defer mu.Unlock()
		ready[t] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, tasks := range group(slices.DeleteFunc(slices.Clone(tasks), func(t *task) bool { return !ready[t] })) {
		if tasks[0].preflight != nil { // must not wait for the batch on the device, which may take hours
			if err := w.preflight(ctx, tasks); err != nil {
				return err
			}
			continue
		}
		select {
		case out <- tasks:
		case <-ctx.Done():
		}
	}
	return nil
}

// group splits tasks into groups of equal plans and progress, in order.
func group(tasks []*task) [][]*task {
	var out [][]*task
	index := map[string]int{}
	for _, t := range tasks {
		key, _ := t.Plan.Key() // marshalling cannot fail: an operator was made from the plan
		switch {
		case t.preflight != nil:
			key = "preflight"
		case t.Checkpoint != nil:
			key = fmt.Sprint(t.Checkpoint.State.Step, key)
		}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}

// stage runs one stage of an item in a span of its trace, within a limit.
func (c *core) stage(t *task, name string, limit time.Duration, run func(ctx context.Context) error) error {
	a := c.watchdog.Begin(t.ctx, name, limit, t)
	defer a.End()
	ctx, end := c.cfg.Instruments.Stage(a.Ctx, c.cfg.Tracer, name)
	err := a.Wrap(run(ctx))
	end(err, outcomeOf(t.ctx, t, err).String())
	return err
}
