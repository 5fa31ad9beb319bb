package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator"
	"ddiff/coordinator/report"
	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/restore/prior"
	"ddiff/storage"
	"ddiff/telemetry"
)

// embeddedLease is the lease time of the embedded queue. Only a worker that hangs lets one
// run out, and there is no other worker to take over, so it is generous.
const embeddedLease = 2 * time.Minute

// runEmbedded runs a campaign with everything in this process.
func runEmbedded(ctx context.Context, spec *manifest.Spec, o runOptions, stdout, stderr io.Writer) error {
	return withEmbedded(ctx, spec, o, stdout, stderr, func(e embedded) error { return e.run(ctx, stdout, o.json) })
}

// withEmbedded opens what a campaign needs in this process, and closes it after use.
func withEmbedded(ctx context.Context, spec *manifest.Spec, o runOptions, stdout, stderr io.Writer, use func(e embedded) error) (err error) {
	p, err := openPrior(spec.Prior)
	if err != nil {
		return err
	}
	tel, stop, err := o.process.telemetry(ctx, service, stderr)
	if err != nil {
		return err
	}
	defer stop()
	results, err := storage.Open(ctx, spec.Output, storage.Options{Lock: true, Logger: tel.Logger})
	if err != nil {
		return fmt.Errorf("open output %s: %w", spec.Output, err)
	}
	defer func() { err = errors.Join(err, results.Close()) }()

	sources, err := o.sources.open(tel.Logger)
	if err != nil {
		return err
	}
	defer sources.Close()
	build, err := o.build()
	if err != nil {
		return err
	}
	rt, err := o.open(tel.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	engine := restore.NewEngine(rt, p, build)
	defer func() { err = errors.Join(err, engine.Close()) }()

	q, stopQueue, err := startQueue(ctx, spec, tel)
	if err != nil {
		return err
	}
	defer stopQueue()
	show := newProgress(o, stdout, stderr)
	defer show.stop()
	return use(embedded{spec: spec, sources: sources, prior: p, engine: engine, queue: q, store: storage.NewTraced(results.Store, tel.Tracer("storage")), tel: tel, show: show})
}

// queueDir makes an empty directory for the queue of an output. It lies in the user's cache,
// or where the user has none among the temporary files, and not in the output: a full or
// remote output disk must not stop the queue. What a run that died left there is dropped,
// it would be dropped by the coordinator anyway.
func queueDir(output string) (string, error) {
	out, err := filepath.Abs(output)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(out))
	name := filepath.Join("ddiff", "queue", hex.EncodeToString(sum[:6]))
	cache, err := os.UserCacheDir()
	if err == nil {
		if err = emptyDir(filepath.Join(cache, name)); err == nil {
			return filepath.Join(cache, name), nil
		}
	}
	if temp, e := os.MkdirTemp("", "ddiff-queue-"); e == nil {
		return temp, nil
	}
	return "", err
}

func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// startQueue starts the embedded server for a campaign. Its files are removed in the end.
func startQueue(ctx context.Context, spec *manifest.Spec, tel *telemetry.Telemetry) (*queue.Queue, func(), error) {
	dir, err := queueDir(spec.Output)
	if err != nil {
		return nil, nil, fmt.Errorf("start queue: %w", err)
	}
	server, err := queue.StartEmbedded(ctx, queue.EmbeddedConfig{Dir: dir, Logger: tel.Logger})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start queue: %w", err), os.RemoveAll(dir))
	}
	stop := func() {
		server.Stop()
		if err := os.RemoveAll(dir); err != nil {
			tel.Logger.Warn("could not remove the queue's files", "reason", err)
		}
	}
	nc, err := server.Connect()
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("connect to queue: %w", err)
	}
	q, err := queue.Open(ctx, nc, queue.Config{
		Campaign: spec.ID(), AckWait: embeddedLease, MaxAttempts: spec.Attempts,
		Logger: tel.Logger, Tracer: tel.Tracer("queue"),
	})
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("open queue: %w", err)
	}
	return q, stop, nil
}

// embedded holds the parts of a run that stand ready.
type embedded struct {
	spec    *manifest.Spec
	prior   *prior.Prior
	sources datasets
	engine  *restore.Engine
	queue   *queue.Queue
	store   *storage.Traced
	tel     *telemetry.Telemetry
	show    *progress
}

// parts makes the coordinator and the worker.
func (e embedded) parts() (*coordinator.Coordinator, *gpuworker.Worker, error) {
	c, err := coordinator.New(coordinator.Config{
		Spec: e.spec, Prior: e.prior, Queue: e.queue, Store: e.store, Sources: e.sources, Rows: e.sources.Rows,
		Finished: e.show.finished, Skipped: e.show.skipped,
		Logger: e.tel.Logger, Tracer: e.tel.Tracer("coordinator"),
	})
	if err != nil {
		return nil, nil, err
	}
	in, err := telemetry.NewInstruments(e.tel.Meter("gpuworker"))
	if err != nil {
		return nil, nil, err
	}
	w, err := gpuworker.New(gpuworker.Config{
		Work: gpuworker.Single{Queue: e.queue, Items: gpuworker.Assignment{
			Campaign: e.spec.ID(), Store: e.store, Sources: e.sources, Engine: e.engine, Batch: e.spec.Batch,
		}},
		Name: "embedded", Version: version(), AckWait: embeddedLease, Steps: e.show.stepped,
		Logger: e.tel.Logger, Tracer: e.tel.Tracer("gpuworker"), Instruments: in,
	})
	return c, w, err
}

// run shards the campaign, works it off, and writes the report.
func (e embedded) run(ctx context.Context, stdout io.Writer, asJSON bool) error {
	c, w, err := e.parts()
	if err != nil {
		return err
	}
	e.show.begin()
	if err := c.Shard(ctx); err != nil {
		return err
	}
	e.show.entered(c.Counts().Items, c.PendingSteps(), true)
	ran := e.work(ctx, c, w)
	e.show.stop()
	// What was finished is reported even when the run was cut short.
	closed := c.Close(context.WithoutCancel(ctx))
	return errors.Join(ran, closed, e.tell(c, ran, stdout, asJSON))
}

// work runs coordinator and worker until all items are settled, ctx ends, or one of them
// fails.
func (e embedded) work(ctx context.Context, c *coordinator.Coordinator, w *gpuworker.Worker) error {
	group, inner := errgroup.WithContext(ctx)
	inner, finished := context.WithCancel(inner)
	defer finished()
	group.Go(func() error {
		defer finished()
		return c.Follow(inner)
	})
	group.Go(func() error { return w.Run(inner) })
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// tell prints the table and the counts.
func (e embedded) tell(c *coordinator.Coordinator, ran error, stdout io.Writer, asJSON bool) error {
	n := c.Counts()
	if asJSON {
		err := json.NewEncoder(stdout).Encode(map[string]any{
			"done": n.Done, "failed": n.Failed, "dead": n.Dead, "pending": n.Pending, "out": e.spec.Output,
		})
		return errors.Join(err, incomplete(n, ran))
	}
	s, err := c.Summary()
	if err != nil {
		return err
	}
	if n.Done > 0 {
		fmt.Fprintln(stdout)
		if err := report.WriteTable(stdout, s, report.FormatText); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "\nreport: %s\n", storage.Locate(e.spec.Output, report.KeyPage))
	}
	pending := ""
	if n.Pending > 0 {
		pending = fmt.Sprintf(" pending=%d", n.Pending)
	}
	fmt.Fprintf(stdout, "done=%d failed=%d dead=%d%s out=%s\n", n.Done, n.Failed, n.Dead, pending, e.spec.Output)
	return incomplete(n, ran)
}

func incomplete(n coordinator.Counts, ran error) error {
	if ran == nil && n.Failed+n.Dead > 0 {
		return fmt.Errorf("%w: %d failed, %d dead", errIncomplete, n.Failed, n.Dead)
	}
	return nil
}
