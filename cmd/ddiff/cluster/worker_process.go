package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/gpuworker"
	"ddiff/internal/cli"
	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/restore/parameter"
	"ddiff/storage"
	"ddiff/telemetry"
)

// clusterPause is the pause between two attempts to read the cluster's record.
const clusterPause = time.Second

// workerProcess holds the components of a worker process.
type workerProcess struct {
	o    workerOptions
	tel  *telemetry.Telemetry
	name string

	probes     *probes
	log        *slog.Logger
	tail       *gpuworker.Tail
	board      *queue.Board
	runtime    *onnxruntime.Runtime // nil when simulated
	precisions []manifest.Precision // of the runtime
	byDefault  manifest.Precision   // of campaigns without one
	fleet      *fleet.Fleet
	tuner      *tuner.Tuner
	simulation *gpuworker.Simulation
	ackWait    time.Duration
	connected  func() bool // to NATS
	closers    []func() error
}

func (p *workerProcess) onClose(f func() error) { p.closers = append(p.closers, f) }

func (p *workerProcess) close() error {
	var errs []error
	for _, f := range slices.Backward(p.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func (p *workerProcess) open(ctx context.Context) error {
	p.tail = gpuworker.NewTail(p.tel.Logger.Handler())
	p.log = slog.New(p.tail).With("worker", p.name)
	p.simulation = p.o.simulation()
	batch, err := p.o.batchSize()
	if err != nil {
		return err
	}
	stop, err := p.o.listen.serve(ctx, p.probes, p.tel)
	if err != nil {
		return err
	}
	p.onClose(func() error { stop(); return nil })
	if p.simulation == nil {
		if p.runtime, err = p.o.run.Open(p.log); err != nil {
			return err
		}
		p.onClose(p.runtime.Close)
	}
	p.probes.started.set(passed)
	p.probes.ready.set(func() error { return errors.New("waiting for NATS, a coordinator and the store") })
	if p.simulation != nil && batch == 0 {
		batch = 1
	}
	nc, err := p.o.nats.connect(ctx, p.name, p.log)
	if err != nil {
		return err
	}
	p.onClose(func() error { nc.Close(); return nil })
	p.connected = nc.IsConnected
	var shared record.Cluster
	if p.board, shared, err = findCluster(ctx, nc, p.log); err != nil {
		return err
	}
	p.ackWait = shared.AckWait
	place := p.o.store
	if place == "" {
		place = shared.Store
	}
	results, err := cli.OpenClusterStore(ctx, place, p.log)
	if err != nil {
		return err
	}
	p.onClose(results.Close)
	transfer, err := telemetry.NewTransfer(p.tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	store := cli.TracedStore(results.Store, place, p.tel, transfer)
	from, err := p.o.sources.Open(place, p.log)
	if err != nil {
		return err
	}
	from.Transfer = transfer
	p.onClose(func() error { from.Close(); return nil })

	cfg := fleet.Config{
		Board: p.board, Store: store, Sources: from, Pool: p.o.pool, Batch: batch, Logger: p.log,
		Attach: func(ctx context.Context, campaign string) (*queue.Queue, error) {
			return queue.Attach(ctx, nc, queue.Config{Campaign: campaign, Logger: p.log, Tracer: p.tel.Tracer("queue")})
		},
	}
	if p.simulation == nil {
		engines, err := p.device(store)
		if err != nil {
			return err
		}
		cfg.Engines, cfg.Tuner = engines, p.tuner
		p.precisions, cfg.Whole = job.Offer(p.runtime)
		cfg.Precisions, cfg.Default, cfg.Methods = p.precisions, p.byDefault, p.o.run.Catalogue.Methods
	}
	if p.simulation != nil { // it computes nothing
		p.precisions = parameter.Precisions()
	}
	p.fleet, err = fleet.New(cfg)
	return err
}

// device creates the tuner and the cache of engines.
func (p *workerProcess) device(store storage.Store) (*enginecache.Cache, error) {
	cache := cli.UserCache(p.log)
	p.tuner = tuner.New(p.log)
	build, err := p.o.run.Build()
	if err != nil {
		return nil, err
	}
	if build, err = build.Complete(p.runtime); err != nil {
		return nil, err
	}
	p.byDefault = build.Precision
	engines, err := enginecache.New(enginecache.Config{
		Runtime: p.runtime, Engine: p.o.run.Engine(build), Store: store,
		Dir: filepath.Join(cache, "priors"), Bytes: p.o.priorMemory << 20, Logger: p.log,
	})
	if err != nil {
		return nil, err
	}
	p.onClose(engines.Close)
	return engines, nil
}

// findCluster waits until a coordinator has set up the cluster, and reads the cluster's record.
func findCluster(ctx context.Context, nc *queue.Conn, log *slog.Logger) (*queue.Board, record.Cluster, error) {
	for logged := false; ; logged = true {
		board, err := queue.OpenBoard(ctx, nc, log)
		var data []byte
		if err == nil {
			data, _, err = board.Get(ctx, record.KeyCluster)
		}
		switch {
		case err == nil:
			shared, err := record.DecodeCluster(data)
			if err != nil {
				return nil, shared, fmt.Errorf("read record %s: %w", record.KeyCluster, err)
			}
			return board, shared, nil
		case !errors.Is(err, queue.ErrNotReady) && !errors.Is(err, queue.ErrNoRecord) && !errors.Is(err, queue.ErrUnavailable):
			return nil, record.Cluster{}, err
		}
		if !logged {
			log.Warn("waiting for a coordinator to set up this cluster", "reason", err)
		}
		if err := retry.Sleep(ctx, clusterPause); err != nil {
			return nil, record.Cluster{}, err
		}
	}
}

// run runs the workers until ctx ends, or until Once has passed without work.
func (p *workerProcess) run(ctx context.Context) error {
	in, err := telemetry.NewInstruments(p.tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	limits, err := p.o.stages.Limits()
	if err != nil {
		return err
	}
	var workers []*gpuworker.Worker
	for _, name := range workerNames(p.name, p.o.simulated) {
		log := p.log
		if name != p.name {
			log = slog.New(p.tail).With("worker", name)
		}
		w, err := gpuworker.New(gpuworker.Config{
			Work: p.fleet, Name: name, Pool: p.o.pool, Version: cli.Version(), Tuner: p.tuner, AckWait: p.ackWait, Limits: limits, SolveMemory: job.SolveMemory(p.o.stages.MemoryShare), Once: p.o.once,
			TolerateQueueErrors: true, Peers: p.fleet.Others, Ended: p.fleet.Ended, Simulate: p.simulation, Log: p.tail,
			Logger: log, Tracer: p.tel.Tracer("gpuworker"), Instruments: in,
		})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	stopLeases, err := in.ObserveLeases(func() int {
		held := 0
		for _, w := range workers {
			held += w.Held()
		}
		return held
	})
	if err != nil {
		return err
	}
	p.onClose(stopLeases)
	p.probes.ready.set(func() error { return p.ready(ctx) })
	p.probes.live.set(func() error { return health(workers) })
	p.log.Info("worker is ready", "name", p.name, "pool", p.o.pool, "provider", p.provider(), "device", p.deviceName())
	return within(ctx, p.o.grace, func() error { return p.work(ctx, workers) })
}

// work runs the workers, their heartbeats and the watch on the campaigns. The services outlive ctx until all workers have
// drained.
func (p *workerProcess) work(ctx context.Context, workers []*gpuworker.Worker) error {
	beside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	services := []*lifecycle.Service{lifecycle.Go(beside, p.fleet.Run)}
	for _, w := range workers {
		b := &gpuworker.Beacon{Board: p.board, Worker: w, Provider: p.provider(), Device: p.deviceName(), Pool: p.o.pool, Precisions: p.precisions, Logger: p.log}
		services = append(services, lifecycle.Go(beside, b.Run))
	}
	defer func() {
		cancel() // ends all services at once; Stop waits for each
		for _, s := range services {
			s.Stop()
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		group.Go(func() error { return w.Run(ctx) })
	}
	return group.Wait()
}

// ready returns the reason why the worker cannot lease items, as far as its session and NATS are concerned, or nil.
func (p *workerProcess) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("draining")
	case !p.connected():
		return errors.New("not connected to NATS")
	}
	return nil
}

func health(workers []*gpuworker.Worker) error {
	var errs []error
	for _, w := range workers {
		errs = append(errs, w.Health())
	}
	return errors.Join(errs...)
}

func (p *workerProcess) provider() string {
	if p.runtime == nil {
		return "simulated"
	}
	return p.runtime.Provider()
}

func (p *workerProcess) deviceName() string {
	if p.runtime == nil {
		return ""
	}
	return p.runtime.Device()
}
