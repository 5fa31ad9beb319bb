package testbed

import (
	"context"
	"flag"
	"io"
	"os"
	"time"
)

// chaosOptions are the flags of chaos.
type chaosOptions struct {
	seed    uint64
	items   int
	faults  int
	steps   int
	workers int
	keep    string
	program string
	limit   time.Duration
	out     io.Writer
}

// short returns the options of continuous integration.
func short(o chaosOptions) chaosOptions {
	o.items, o.faults, o.steps, o.workers, o.limit = 40, 13, 20, 2, 4*time.Minute
	return o
}

// chaos is the command behind `make chaos`; TestChaos runs a short form. It injects faults into a cluster during a
// campaign and checks that no item is lost or duplicated and that no result differs.
//
// The cluster consists of three NATS servers, an S3 server behind a proxy, two coordinators and three workers. The campaign first runs undisturbed in one
// process (ddiff run); the results of the cluster are compared with that run.
//
// # Faults
//
// The seed determines the faults: shuffled decks of all kinds. Each fault is due at a drawn number
// of results, so that all faults hit the campaign, independent of the speed of the machine. Two
// runs with one seed have the same faults in the same order, but not the same timing.
//
//	worker-kill          SIGKILL, restart after a while
//	worker-suspend       SIGSTOP for longer than the lease, then SIGCONT: a zombie
//	worker-drain         SIGTERM during work, restart
//	coordinator-kill     SIGKILL, restart after a while
//	coordinator-suspend  SIGSTOP for longer than the leader's term, then SIGCONT
//	nats-kill            SIGKILL of one of three servers, restart
//	nats-leader-kill     the same for the leader of the work stream
//	stream-delete        deletion of the work stream
//	s3-unavailable       every request gets 503
//	s3-hang              connections stay open without data
//	s3-reset             connections are reset
//	disk-full            the disk with a worker's cache is full
//	clock                the wall clock of a process is wrong by up to ten minutes
//
// # Checks
//
// At the end every item has exactly one final state. Every item that is done has exactly one result
// under its identity, and all its files match their digests (ddiff verify). Every measurement equals
// that of the undisturbed run bit by bit, and every restored image to within one grey level. A
// second, small campaign has damaged images: the same items fail as without faults.
//
// # Figures
//
// redelivered counts the deliveries of items after an unsuccessful one, from the attempts in the
// workers' logs. The share of duplicate work is the number of solutions beyond the first of each
// item, divided by the number of items. The recovery time of a fault runs from its beginning to
// the next result in storage, and so includes the fault; recovery_max_s is the maximum.
func chaos(ctx context.Context, args []string) error {
	o := chaosOptions{out: os.Stdout, limit: time.Hour}
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the images and the faults")
	flags.IntVar(&o.items, "items", 400, "items of the campaign, rounded up to a multiple of the tasks")
	flags.IntVar(&o.faults, "faults", 65, "number of faults")
	flags.IntVar(&o.steps, "steps", 20, "solver steps of an item")
	flags.IntVar(&o.workers, "workers", 3, "number of workers")
	flags.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	flags.StringVar(&o.program, "program", "", "a ddiff binary (default: a new build)")
	brief := flags.Bool("short", false, "the short form of continuous integration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *brief {
		o = short(o)
	}
	return runChaos(ctx, o)
}
