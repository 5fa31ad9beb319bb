// Package embedded runs campaigns in this process: a coordinator, a JetStream queue and a worker for each device, with their progress on
// standard error.
//
// [WithCampaign] opens what one campaign needs and [WithMachine] what successive campaigns share; both close everything after
// use. The output is locked meanwhile. Rerunning an interrupted campaign resumes it.
package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator"
	"ddiff/gpuworker"
	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/storage"
	"ddiff/telemetry"
)

// embeddedLease is the lease time of the embedded queue. It is long because no second worker could take over.
const embeddedLease = 2 * time.Minute

// embeddedPatience is how long a run waits for an unavailable store. Then it ends, and the same command resumes.
const embeddedPatience = 30 * time.Second

// embeddedGC is the GC percentage of a run without GOGC. Its heap is mostly long-lived state of coordinator and queue, of which a run of many rows has much.
const embeddedGC = 20

// newBallast returns 256 MiB that no memory backs, as nobody writes to it: a small heap may grow by a fifth of it between two collections, which
// would otherwise take a fifth of a worker's processor time. It has parts, because the runtime now and then clears a new allocation.
func newBallast() [][]byte {
	parts := make([][]byte, 256)
	for i := range parts {
		parts[i] = make([]byte, 1<<20)
	}
	return parts
}

// WithCampaign opens what a campaign needs in this process, and closes it after use.
func WithCampaign(ctx context.Context, spec *manifest.Spec, o campaign.Options, stdout, stderr io.Writer, use func(e Campaign) error) error {
	return WithMachine(ctx, spec, o, stdout, stderr, func(m Machine) error { return m.WithCampaign(ctx, spec, use) })
}

// WithMachine opens what campaigns with the prior, dataset and output of spec share, and closes it after use.
func WithMachine(ctx context.Context, spec *manifest.Spec, o campaign.Options, stdout, stderr io.Writer, use func(m Machine) error) (err error) {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(embeddedGC))
		defer runtime.KeepAlive(newBallast())
	}
	limits, err := o.Stages.Limits()
	if err != nil {
		return err
	}
	p, err := cli.OpenPriorOf(spec, o.Catalogue)
	if err != nil {
		return err
	}
	tel, stop, err := o.Process.Telemetry(ctx, cli.Service, stderr)
	if err != nil {
		return err
	}
	defer stop()
	// Wrong flags end the run before the output is created.
	build, err := o.Check()
	if err != nil {
		return err
	}
	sources, err := o.Sources.Open(spec.Output, tel.Logger)
	if err != nil {
		return err
	}
	defer sources.Close()
	if err := cli.CheckTarget(spec.Output); err != nil {
		return err
	}
	results, err := storage.Open(ctx, spec.Output, storage.Options{Lock: true, Logger: tel.Logger})
	if err != nil {
		return fmt.Errorf("open output %s: %w", redact.Address(spec.Output), err)
	}
	defer func() { err = errors.Join(err, results.Close()) }()

	runtimes, err := o.OpenAll(tel.Logger)
	if err != nil {
		return err
	}
	engines := make([]*restore.Engine, 0, len(runtimes))
	defer func() {
		if errors.Is(err, guard.ErrStuck) { // an engine is in use
			return
		}
		for _, e := range engines {
			err = errors.Join(err, e.Close())
		}
		err = errors.Join(err, cli.CloseRuntimes(runtimes))
	}()
	why, err := campaign.FixPrecision(spec, runtimes[0], o.Catalogue)
	if err != nil {
		return err
	}
	o.NotePrecision(stderr, spec, why)
	for _, rt := range runtimes {
		engine, err := restore.OpenEngine(ctx, rt, p, o.Engine(build), tel.Logger)
		if err != nil {
			return cli.PriorError(err)
		}
		engines = append(engines, engine)
	}
	if doubt := engines[0].Doubt; doubt != "" {
		fmt.Fprintln(stderr, "warning:", cli.Printable(doubt))
	}
	operators, err := campaign.VerifyOperators(ctx, runtimes[0], o.Catalogue, p)
	if err != nil {
		return err
	}

	dir, removeScratch, err := cli.MakeScratch(spec.Output)
	if err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	defer func() {
		if err := removeScratch(); err != nil {
			tel.Logger.Warn("could not remove the scratch directory", "reason", err)
		}
	}()
	transfer, err := telemetry.NewTransfer(tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	sources.Transfer = transfer
	store := cli.TracedStore(results.Store, spec.Output, tel, transfer)
	m := Machine{dir: dir, catalogue: o.Catalogue, Sources: sources, Prior: p, Engine: engines[0], engines: engines, operators: operators, Store: store, limits: limits, memoryShare: o.Stages.MemoryShare, tel: tel}
	m.progress = func() *cli.Progress {
		show := cli.NewProgress(o.JSON, o.Quiet, stdout, stderr)
		show.Pace = o.Pace(p.SHA256, spec.Precision)
		return show
	}
	return use(m)
}

// WithCampaign starts the queue of a campaign, and stops it after use. One campaign at a time may use the machine.
func (m Machine) WithCampaign(ctx context.Context, spec *manifest.Spec, use func(e Campaign) error) error {
	for _, name := range []string{"nats", "windows"} {
		if err := emptyDir(filepath.Join(m.dir, name)); err != nil {
			return fmt.Errorf("create scratch directory: %w", err)
		}
	}
	q, err := openEmbeddedQueue(ctx, filepath.Join(m.dir, "nats"), spec, m.tel)
	if err != nil {
		return err
	}
	defer q.server.Stop()
	e := Campaign{Machine: m, Spec: spec, queue: q, Rows: m.Sources.Rows, Show: m.progress()}
	if e.scratch, err = storage.NewDir(filepath.Join(m.dir, "windows")); err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	defer e.Show.Stop()
	return use(e)
}

func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// Machine has the opened parts that successive campaigns share.
type Machine struct {
	dir         string // scratch
	catalogue   manifest.Catalogue
	Prior       *prior.Prior
	Sources     cli.Datasets
	Engine      *restore.Engine           // of the first device
	engines     []*restore.Engine         // one per device
	operators   map[string]*operator.File // by SHA-256
	Store       storage.Store
	limits      guard.Limits
	memoryShare float64 // of the machine, for solving
	tel         *telemetry.Telemetry
	progress    func() *cli.Progress
}

// Campaign has the opened parts of a run.
type Campaign struct {
	Machine
	Spec    *manifest.Spec
	Rows    shard.Rows
	Keep    func(it *item.Item) bool       // nil: all
	Settled func(res item.Result)          // sees each item in its final state; nil: nobody
	LeftOut manifest.Skips                 // inputs that are not in the dataset, for the report
	Read    func(items int, complete bool) // sees how many items the dataset has so far; nil: nobody
	// Reported is called for each report that is written while the campaign runs; nil: there is only the last one.
	Reported func()
	queue    *embeddedQueue
	scratch  storage.Store
	Show     *cli.Progress
}

// smallImages is the number of images of at most smallSide pixels, with CUDA smallSideCUDA, that are solved together; docs/data/devices.csv and gpu.csv have the
// times.
const smallImages, smallSide, smallSideCUDA = 16, 64, 256

// batch returns the largest number of items, and of pixels, to solve together by a provider. Measurements may be larger than the dataset's size.
func batch(s *manifest.Spec, provider string) (items, pixels int) {
	side := smallSide
	if provider == onnxruntime.ProviderCUDA {
		side = smallSideCUDA
	}
	switch d := s.Dataset; {
	case s.Batch > 0:
		return s.Batch, 0
	case d.Fit != item.FitPad && d.Size <= side:
		return smallImages, smallImages * side * side
	}
	return job.Together(provider), 0
}

// Parts creates the coordinator and the workers, one per device. See coordinator.RunConfig for read.
func (e Campaign) Parts(read func(items, steps int, complete bool)) (*coordinator.Run, []*gpuworker.Worker, error) {
	run, err := coordinator.NewRun(coordinator.RunConfig{
		Spec: e.Spec, Prior: e.Prior, Board: e.queue.board, Open: e.queue.open, Scratch: e.scratch, Store: e.Store,
		Sources: e.Sources, Rows: e.Rows, Keep: e.Keep, Read: read, Reported: e.Reported, Skipped: e.Show.Skipped, LeftOut: e.LeftOut, Catalogue: e.catalogue,
		Finished: func(res item.Result, found bool) {
			e.Show.Finished(res, found)
			if e.Settled != nil {
				e.Settled(res)
			}
		},
		Logger: e.tel.Logger, Tracer: e.tel.Tracer("coordinator"),
	})
	if err != nil {
		return nil, nil, err
	}
	in, err := telemetry.NewInstruments(e.tel.Meter(cli.Service))
	if err != nil {
		return nil, nil, err
	}
	items, pixels := batch(e.Spec, e.Engine.Runtime().Provider())
	var workers []*gpuworker.Worker
	for i, engine := range e.engines {
		name := "embedded"
		if i > 0 {
			name = fmt.Sprint(name, " ", i+1)
		}
		w, err := gpuworker.New(gpuworker.Config{
			Work: gpuworker.Single{Queue: e.queue.work, Items: gpuworker.Assignment{
				Campaign: e.Spec.ID(""), Store: e.Store, Sources: e.Sources, Engine: engine, Operators: e.operators, Batch: items, Pixels: pixels,
			}},
			Name: name, Version: cli.Version(), AckWait: embeddedLease, Limits: e.limits, Steps: e.Show.Stepped,
			WholeResults: true, Patience: embeddedPatience, SolveMemory: job.SolveMemory(e.memoryShare) / int64(len(e.engines)),
			Logger: e.tel.Logger, Tracer: e.tel.Tracer("gpuworker"), Instruments: in,
		})
		if err != nil {
			return nil, nil, err
		}
		workers = append(workers, w)
	}
	return run, workers, nil
}

// Run processes the campaign, writes the report, and prints the summary.
func (e Campaign) Run(ctx context.Context, stdout io.Writer, asJSON bool) error {
	run, workers, err := e.Parts(func(items, steps int, complete bool) {
		e.Show.Entered(items, steps, complete)
		if e.Read != nil {
			e.Read(items, complete)
		}
	})
	if err != nil {
		return err
	}
	e.Show.Begin()
	ran := e.Process(ctx, run, workers)
	e.Show.Stop()
	if ran != nil && run.Counts().Items == 0 {
		return ran
	}
	// The report has the settled items of an interrupted run too.
	summary, closed := run.Close(context.WithoutCancel(ctx))
	return errors.Join(ran, closed, e.print(run.Counts(), summary, ran, stdout, asJSON))
}

// Process runs coordinator and workers until all items are settled, ctx ends, or one of them fails.
func (e Campaign) Process(ctx context.Context, run *coordinator.Run, workers []*gpuworker.Worker) error {
	in, err := telemetry.NewInstruments(e.tel.Meter(cli.Service))
	if err != nil {
		return err
	}
	stop, err := in.ObserveLeases(func() (held int) {
		for _, w := range workers {
			held += w.Held()
		}
		return held
	})
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // the registration is known
	group, inner := errgroup.WithContext(ctx)
	inner, settled := context.WithCancel(inner)
	defer settled()
	group.Go(func() error {
		defer settled()
		return run.Process(inner)
	})
	for _, w := range workers {
		group.Go(func() error { return w.Run(inner) })
	}
	return group.Wait()
}

// print prints the table and the counts.
func (e Campaign) print(n record.Counts, s aggregate.Summary, ran error, stdout io.Writer, asJSON bool) error {
	if asJSON {
		err := json.NewEncoder(stdout).Encode(map[string]any{
			"done": n.Done, "failed": n.Failed, "dead": n.Dead, "pending": n.Pending, "out": e.Spec.Output,
			"left_out": e.Show.Skips(),
		})
		return errors.Join(err, incomplete(n, ran))
	}
	if n.Done > 0 && len(s.Rows) > 0 {
		fmt.Fprintln(stdout)
		if err := table.Write(stdout, cli.Clean(s), table.FormatText); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nreport: %s\n", storage.Locate(e.Spec.Output, report.KeyPage))
	}
	if warned, codes := s.Warned(); warned > 0 {
		fmt.Fprintf(stdout, "warnings: %d of %d items: %s; see the column warnings of results.csv\n", warned, n.Done, aggregate.WarningCounts(codes))
	}
	pending := ""
	if n.Pending > 0 {
		pending = fmt.Sprintf(" pending=%d", n.Pending)
	}
	fmt.Fprintf(stdout, "done=%d failed=%d dead=%d%s out=%s\n", n.Done, n.Failed, n.Dead, pending, e.Spec.Output)
	return incomplete(n, ran)
}

func incomplete(n record.Counts, ran error) error {
	switch {
	case ran == nil && n.Pending > 0:
		return fmt.Errorf("%w: %d results were deleted from the output meanwhile; rerun the same command", cli.ErrIncomplete, n.Pending)
	case ran == nil && n.Failed+n.Dead > 0:
		return fmt.Errorf("%w: %d failed, %d dead", cli.ErrIncomplete, n.Failed, n.Dead)
	}
	return nil
}
