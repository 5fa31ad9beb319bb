package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"ddiff/internal/testbed/clustertest"
)

// options are the flags.
type options struct {
	rows    int
	least   int // the smallest manifest
	workers int
	item    time.Duration
	during  time.Duration
	sync    bool
	servers int
	program string
	keep    string
	out     io.Writer
}

// quick returns the options of continuous integration.
func quick(o options) options {
	o.rows, o.least, o.workers, o.item, o.during = 10_000, 10_000, 50, 500*time.Millisecond, 8*time.Second
	return o
}

// TestMain runs the tests, or with -full the command behind `make scale`.
func TestMain(m *testing.M) {
	o := options{out: os.Stdout}
	full := flag.Bool("full", false, "measure as configured, instead of running the tests")
	flag.IntVar(&o.rows, "rows", 1_000_000, "rows of the largest manifest")
	flag.IntVar(&o.least, "least", 1000, "rows of the smallest manifest; each next one has ten times as many")
	flag.IntVar(&o.workers, "workers", 500, "simulated workers")
	flag.DurationVar(&o.item, "item", 2*time.Second, "mean time for which a worker holds an item")
	flag.DurationVar(&o.during, "during", time.Minute, "duration of the work")
	flag.BoolVar(&o.sync, "sync-always", false, "write every message to disk before it is acknowledged")
	flag.IntVar(&o.servers, "servers", 1, "NATS servers, 1 or 3; 3 hold each message three times")
	flag.StringVar(&o.program, "program", "", "a ddiff binary (default: a new build)")
	flag.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	brief := flag.Bool("quick", false, "the quick form of continuous integration")
	flag.Parse()
	if !*full {
		os.Exit(m.Run())
	}
	if *brief {
		o = quick(o)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run measures and prints.
func run(ctx context.Context, o options) (err error) {
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "ddiff-scale-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if o.program == "" {
		if o.program, err = clustertest.BuildProgram(ctx, dir); err != nil {
			return err
		}
	}
	var largest published
	for rows := min(o.least, o.rows); ; rows = min(10*rows, o.rows) {
		if largest, err = publish(ctx, o, dir, rows); err != nil {
			return err
		}
		fmt.Fprintln(o.out, largest)
		if rows == o.rows {
			break
		}
	}
	worked, err := work(ctx, o, dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.out, worked)
	fmt.Fprintf(o.out, "items=%d items_per_s=%.0f rss_mib=%d busy=%.2f p50_ms=%.0f p99_ms=%.0f\n",
		largest.items, largest.rate(), largest.peak>>20, worked.busy, worked.p50, worked.p99)
	return nil
}
