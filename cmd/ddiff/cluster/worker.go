package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ddiff/gpuworker"
	"ddiff/internal/cli"
	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/storage"
)

// errGrace: the worker did not end within its grace period.
var errGrace = errors.New("the grace period expired")

// workerOptions are the flags of worker.
type workerOptions struct {
	nats    natsFlags
	sources cli.SourceFlags
	stages  cli.StageFlags
	process cli.ProcessFlags
	run     cli.ComputeOptions // device, library, threads

	store       string
	name        string
	pool        string
	batch       string
	grace       time.Duration
	listen      listenFlags
	once        time.Duration
	priorMemory int64
	simulate    time.Duration
	simulated   int
}

func newWorkerCommand(c manifest.Catalogue) *cobra.Command {
	var o workerOptions
	o.run.Catalogue = c
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Process the campaigns of a cluster",
		Long: "Lease items of all running campaigns of a cluster, restore them on one device, and write the\n" +
			"results to the cluster's store, until a signal stops the process. Any number of workers may run at the\n" +
			"same time, one per GPU. On SIGTERM a worker stops after the current step,\n" +
			"stores checkpoints of unfinished items for other workers, and exits. A worker with a stage that exceeds\n" +
			"--stage-timeout exits with code 10: a supervisor should start it again.",
		Example: "  ddiff worker --nats nats://127.0.0.1:4222 --device cuda:0\n" +
			"  ddiff worker --nats nats://127.0.0.1:4222 --once 1m",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWorker(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.nats.role = "worker"
	o.nats.add(cmd)
	o.sources.Add(f)
	o.stages.Add(f)
	o.process.Add(f, "info")
	f.StringVar(&o.store, "store", "", "address of the result store (default: the coordinator's)")
	f.StringVar(&o.name, "name", "", "name of this worker (default: host and process id)")
	f.StringVar(&o.pool, "pool", manifest.DefaultPool, "`name` of this worker's pool: it leases no items of campaigns that ask for another one")
	f.StringVar(&o.batch, "batch", "auto", "images per solver call, or auto: measured in the first batches of each process")
	f.DurationVar(&o.grace, "grace", 25*time.Second, "time for a stopped worker to exit")
	o.listen.add(f)
	f.DurationVar(&o.once, "once", 0, "exit after this time without work (0: never)")
	f.Int64Var(&o.priorMemory, "prior-memory", 0, "memory for open priors in MiB (0: 8192)")
	o.run.AddDevice(f, onnxruntime.ProviderAuto)
	o.run.AddBuild(f)
	o.run.AddPrecision(f)
	f.DurationVar(&o.simulate, "simulate", 0, "hold each item for about this time instead of computing")
	f.IntVar(&o.simulated, "simulate-workers", 1, "number of simulated workers")
	for _, hidden := range []string{"simulate", "simulate-workers"} {
		_ = f.MarkHidden(hidden) // the flag exists
	}
	return cmd
}

// batchSize parses --batch; 0 is auto.
func (o workerOptions) batchSize() (int, error) {
	if o.batch == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(o.batch)
	if err != nil || n < 1 || n > 1024 {
		return 0, cli.Usage(fmt.Errorf("--batch: %q is neither auto nor a number from 1 to 1024", o.batch))
	}
	return n, nil
}

func (o workerOptions) check() error {
	if _, err := o.stages.Limits(); err != nil {
		return err
	}
	if _, err := o.run.Check(); err != nil {
		return err
	}
	if _, err := o.batchSize(); err != nil {
		return err
	}
	if _, err := o.sources.Config("", nil); err != nil {
		return err
	}
	if err := manifest.CheckPool(o.pool); err != nil {
		return cli.Usage(fmt.Errorf("--pool: %w", err))
	}
	switch {
	case o.grace <= 0:
		return cli.Usage(fmt.Errorf("--grace: %v is not positive", o.grace))
	case o.once < 0:
		return cli.Usage(fmt.Errorf("--once: %v is negative", o.once))
	case o.priorMemory < 0:
		return cli.Usage(fmt.Errorf("--prior-memory: %d is negative", o.priorMemory))
	case o.simulate < 0:
		return cli.Usage(fmt.Errorf("--simulate: %v is negative", o.simulate))
	case o.simulated < 1 || (o.simulated > 1 && o.simulate == 0):
		return cli.Usage(fmt.Errorf("--simulate-workers: %d workers of one process need --simulate", o.simulated))
	}
	return nil
}

// runWorker runs a worker, or several simulated ones, until ctx ends.
func runWorker(ctx context.Context, o workerOptions, stdout, stderr io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.store != "" {
		if o.store, err = storage.Absolute(o.store); err != nil {
			return cli.Usage(fmt.Errorf("--store: %w", err))
		}
	}
	o.process.Prometheus = o.listen.metrics != ""
	tel, stop, err := o.process.Telemetry(ctx, cli.Service+"-worker", stderr)
	if err != nil {
		return err
	}
	p := &workerProcess{o: o, tel: tel, name: processName(o.name), probes: newProbes("opening the device")}
	err = p.open(ctx)
	if err == nil {
		err = p.run(ctx)
	}
	if errors.Is(err, errGrace) || errors.Is(err, guard.ErrStuck) {
		tel.EndSpans(err.Error())
		// Closing the resources of a stage that still runs could hang or crash.
		stop()
		return err
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // stopped before the start
	}
	err = errors.Join(err, p.close())
	if p.simulation != nil {
		if r := p.simulation.Report(); err == nil || r.Items > 0 {
			fmt.Fprintf(stdout, "workers=%d items=%d busy=%.3f p50_ms=%.1f p99_ms=%.1f\n",
				r.Workers, r.Items, r.Busy, milliseconds(r.P50), milliseconds(r.P99))
		}
	}
	stop()
	logEnd(p.log, err)
	return err
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// within runs work, and returns errGrace when work has not returned within grace after the end of ctx.
func within(ctx context.Context, grace time.Duration, work func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- work() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("%w: the worker did not stop within %v; other workers get its items when their leases expire, without checkpoints", errGrace, grace)
	}
}

func workerNames(name string, n int) []string {
	if n == 1 {
		return []string{name}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", name, i+1)
	}
	return names
}

func (o workerOptions) simulation() *gpuworker.Simulation {
	if o.simulate == 0 {
		return nil
	}
	return &gpuworker.Simulation{Mean: o.simulate}
}
