package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// options are the flags.
type options struct {
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
func short(o options) options {
	o.items, o.faults, o.steps, o.workers, o.limit = 40, 13, 20, 2, 4*time.Minute
	return o
}

// TestMain runs the tests, or with -full the command behind `make chaos`.
func TestMain(m *testing.M) {
	o := options{out: os.Stdout, limit: time.Hour}
	full := flag.Bool("full", false, "inject faults as configured, instead of running the tests")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the images and the faults")
	flag.IntVar(&o.items, "items", 400, "items of the campaign, rounded up to a multiple of the tasks")
	flag.IntVar(&o.faults, "faults", 65, "number of faults")
	flag.IntVar(&o.steps, "steps", 20, "solver steps of an item")
	flag.IntVar(&o.workers, "workers", 3, "number of workers")
	flag.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	flag.StringVar(&o.program, "program", "", "a ddiff binary (default: a new build)")
	brief := flag.Bool("short", false, "the short form of continuous integration")
	flag.Parse()
	if !*full {
		os.Exit(m.Run())
	}
	if *brief {
		o = short(o)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}
