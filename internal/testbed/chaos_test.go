package testbed

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"ddiff/manifest"
)

// chaosOptions are the flags of chaos.
type chaosOptions struct {
	seed    uint64
	seeds   int
	items   int
	faults  int
	steps   int
	workers int
	keep    string
	program string
	// brief: neither outages of 30 s nor clusters beside the main one.
	brief bool
	// limit is the deadline of all seeds, seedLimit of one.
	limit, seedLimit time.Duration
	out              io.Writer
}

// short returns the options of continuous integration.
func short(o chaosOptions) chaosOptions {
	o.items, o.faults, o.steps, o.workers, o.seeds, o.brief = 40, 12, 20, 2, 1, true
	o.limit, o.seedLimit = 5*time.Minute, 4*time.Minute
	return o
}

// chaos is the command behind `make chaos`; TestChaos runs a short form. It injects faults into a cluster during
// campaigns and checks that no item is lost or duplicated and that no result differs.
//
// The cluster consists of three NATS servers, an S3 server behind a proxy, two coordinators and three workers. Every
// process has S3 keys of its own. The campaigns have the default number of attempts. They first run undisturbed in one
// process (ddiff run), once for all seeds; the results of the cluster are compared with that run.
//
// # Faults
//
// The seed determines the faults: shuffled decks of all kinds, which consecutive seeds continue. Each fault is due at a
// drawn number of results, so that all faults hit the campaign, independent of the speed of the machine. Two runs with
// one seed have the same faults in the same order, but not the same timing.
//
//	worker-kill              SIGKILL, restart after a while
//	worker-suspend           SIGSTOP for longer than the lease, then SIGCONT: a zombie
//	worker-drain             SIGTERM during work, restart
//	worker-keys              S3 refuses the keys of one worker for 10 to 20 s
//	prior-damage             SIGKILL, a damaged prior in the worker's cache, restart
//	coordinator-kill         SIGKILL, restart after a while
//	coordinator-suspend      SIGSTOP for longer than the leader's term, then SIGCONT
//	leader-keys              S3 refuses the keys of the leader until another coordinator leads
//	takeover-s3-unavailable  SIGKILL of the leader while every request gets 503
//	verb-cancel, verb-pause  cancel or pause, SIGKILL of the leader right after, resume
//	verb-resume              cancel, resume within 0.5 s, SIGKILL of the leader right after
//	verb-retry               retry of failed items, SIGKILL of the leader before its answer
//	nats-kill                SIGKILL of one of three servers, restart
//	nats-leader-kill         the same for the leader of the work stream
//	stream-delete            deletion of the work stream
//	s3-unavailable           every request gets 503, for 2 to 6 s as in the other faults of S3
//	s3-hang                  connections stay open without data
//	s3-reset                 connections are reset
//	s3-keys                  every request gets ExpiredToken, InvalidAccessKeyId or AccessDenied
//	disk-full                the disk with a worker's cache is full
//	clock                    the wall clock of a process is wrong by up to ten minutes
//
// Each seed also has one outage of 30 to 35 s: of all NATS servers, or of S3 (503, refused keys, hanging connections, or
// 503 while a campaign is divided into items). Another campaign is hit by 503 or refused keys for 4 to 12 s while it
// is divided into items.
//
// # Clusters beside the main one
//
// Two small clusters run beside the main one. In the first, an image kills every worker that decodes it; then its dead
// item is retried while the leader is killed, and a campaign has a prior with an endless loop. In the second, an image
// of a published window is deleted and the leader killed.
//
// # Checks
//
// At the end every item has exactly one final state. Every item that is done has exactly one result
// under its identity, and all its files match their digests (ddiff verify). Every measurement equals
// that of the undisturbed run bit by bit, and every restored image to within one grey level. A
// second, small campaign has damaged images: the same items fail as without faults. Beside poison,
// exactly the poison is dead.
//
// # Figures
//
// redelivered counts the deliveries of items after an unsuccessful one, from the attempts in the
// workers' logs. The share of duplicate work is the number of solutions beyond the first of each
// item, divided by the number of items. The recovery time of a fault runs from its beginning to
// the next result in storage, and so includes the fault; recovery_max_s is the maximum.
func chaos(ctx context.Context, args []string) error {
	o := chaosOptions{out: os.Stdout, limit: 2 * time.Hour, seedLimit: 10 * time.Minute}
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the faults")
	flags.IntVar(&o.seeds, "seeds", 1, "number of consecutive seeds, from --seed")
	flags.IntVar(&o.items, "items", 160, "items of the campaign, rounded up to a multiple of the tasks")
	flags.IntVar(&o.faults, "faults", 16, "short faults of a seed; an outage and a fault during sharding come on top")
	flags.IntVar(&o.steps, "steps", 20, "solver steps of an item")
	flags.IntVar(&o.workers, "workers", 3, "number of workers, 2 to 4")
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

// settings lists all settings of the run.
func (o chaosOptions) settings(p plans) string {
	return fmt.Sprintf("settings: attempts=%d (default) items=%d+%d+%d image=%dx%d tasks=%d steps=%d (sharding: %d) canary=%d "+
		"nats=3 replicas=3 coordinators=2 workers=%d (threads=1 %s) lease=%v election=%v stall=%v "+
		"faults=%d outage=%v (%v to %v) beside=%v (poison: workers=%d batch=%d memory=%d MiB) seeds=%d..%d processors=%d",
		manifest.Default().Attempts, p.sound.items(), p.damaged.items(), p.sharding.items(), size, size, len(tasks), o.steps, p.sharding.steps, p.sound.canary,
		o.workers, strings.Join(workerArgs, " "), lease, term, stall,
		o.faults, !o.brief, outageLeast, outageMost, !o.brief, poisonWorkers, poisonBatch, poisonMemory>>20,
		o.seed, o.seed+uint64(o.seeds)-1, runtime.NumCPU())
}
