package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// scaleOptions are the flags of scale.
type scaleOptions struct {
	rows    int
	least   int // the smallest manifest
	workers int
	item    time.Duration
	during  time.Duration
	// campaigns is the number of waiting campaigns whose memory is measured.
	campaigns int
	// idle is the number of open campaigns without work beside which one worker is measured for the time besideIdle.
	idle       int
	besideIdle time.Duration
	sync       bool
	servers    int
	program    string
	keep       string
	out        io.Writer
}

// quick returns the options of continuous integration.
func quick(o scaleOptions) scaleOptions {
	o.rows, o.least, o.workers, o.item, o.during = 5_000, 5_000, 50, 500*time.Millisecond, 8*time.Second
	o.campaigns, o.idle, o.besideIdle = 10, 10, 3*time.Second
	return o
}

// scale is the command behind `make scale`; TestScale runs a quick form. It measures coordinator and queue under a load
// beyond the compute of this machine: large manifests, and simulated workers that hold each item for a drawn time instead
// of restoring it. Processes, JetStream and store are real.
//
// # Manifests
//
// For each size, from a thousand rows up, a fresh cluster gets a campaign with a list that states
// digest and size of every image, so that no image is read. The command measures items per second
// from submission to the complete publication of the manifest, the largest resident memory of the
// coordinator (VmHWM), and the processor time per item of coordinator and NATS server.
//
// # Workers
//
// Then simulated workers share a campaign for a while. The time of an item is uniform between 0.5
// and 1.5 times the mean. busy is the share of time in which a worker holds an item, between its
// first and its last item; the dispatch latency is the time from a request for work to the lease.
//
// # Idle campaigns
//
// One worker works for a while on its only open campaign, and then on a campaign beside open campaigns without work.
// idle_ratio is its share of busy time in the second case, divided by the share in the first.
//
// # Takeover
//
// A leader dies after the outcomes of all rows but a thousand, see leaderTakeover.
//
// The last line is items=N items_per_s=N rss_mib=N busy=0.xx p50_ms=N p99_ms=N idle_ratio=0.xx campaign_mib=x.x
// takeover_s=x.x, of the largest manifest, the workers, the idle campaigns, the waiting campaigns, and the takeover.
func scale(ctx context.Context, args []string) error {
	o := scaleOptions{out: os.Stdout}
	flags := flag.NewFlagSet("scale", flag.ExitOnError)
	flags.IntVar(&o.rows, "rows", 1_000_000, "rows of the largest manifest")
	flags.IntVar(&o.least, "least", 1000, "rows of the smallest manifest; each next one has ten times as many")
	flags.IntVar(&o.workers, "workers", 500, "simulated workers")
	flags.DurationVar(&o.item, "item", 2*time.Second, "mean time for which a worker holds an item")
	flags.DurationVar(&o.during, "during", time.Minute, "duration of the work")
	flags.IntVar(&o.campaigns, "campaigns", 60, "waiting campaigns whose memory is measured")
	flags.IntVar(&o.idle, "idle", 150, "open campaigns without work beside which one worker is measured")
	flags.DurationVar(&o.besideIdle, "beside-idle", 20*time.Second, "duration of that measurement")
	flags.BoolVar(&o.sync, "sync-always", false, "write every message to disk before it is acknowledged")
	flags.IntVar(&o.servers, "servers", 1, "NATS servers, 1 or 3; 3 hold each message three times")
	flags.StringVar(&o.program, "program", "", "a ddiff binary (default: a new build)")
	flags.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	brief := flags.Bool("quick", false, "the quick form of continuous integration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *brief {
		o = quick(o)
	}
	return runScale(ctx, o)
}

// runScale measures and prints.
func runScale(ctx context.Context, o scaleOptions) (err error) {
	defer caught(&err)
	dir, remove, err := directory(o.keep, "ddiff-scale-")
	check(err)
	defer func() { err = errors.Join(err, remove()) }()
	if o.program == "" {
		o.program = try(BuildProgram(ctx, dir))
	}
	var largest published
	for rows := min(o.least, o.rows); ; rows = min(10*rows, o.rows) {
		largest = publish(ctx, o, dir, rows)
		fmt.Fprintln(o.out, largest)
		if rows == o.rows {
			break
		}
	}
	worked := work(ctx, o, dir)
	fmt.Fprintln(o.out, worked)
	each := waiting(ctx, o, dir)
	fmt.Fprintf(o.out, "%d waiting campaigns: %.1f MiB of the leader each\n", o.campaigns, each)
	ratio := idleRatio(ctx, o, dir)
	took := leaderTakeover(ctx, o, dir)
	fmt.Fprintf(o.out, "takeover after %d outcomes: %v\n", o.rows, took)
	fmt.Fprintf(o.out, "items=%d items_per_s=%.0f rss_mib=%d busy=%.2f p50_ms=%.0f p99_ms=%.0f idle_ratio=%.2f campaign_mib=%.1f takeover_s=%.1f\n",
		largest.items, largest.rate(), largest.peak>>20, worked.busy, worked.p50, worked.p99, ratio, each, took.answers.Seconds())
	return nil
}
