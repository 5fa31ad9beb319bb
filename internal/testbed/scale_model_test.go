package testbed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// modelOptions are the flags of scale-model.
type modelOptions struct {
	campaigns, rows    int
	workers, processes int
	item, during       time.Duration
	program, keep      string
	out                io.Writer
}

// small returns the options of continuous integration.
func small(o modelOptions) modelOptions {
	o.campaigns, o.rows, o.workers, o.processes, o.item, o.during = 20, 100, 100, 2, time.Second, 5*time.Second
	return o
}

// scaleModel is the command behind `make scale-model`; TestScaleModel runs a small form. It measures one cluster with many
// campaigns and many simulated workers: a real NATS server, a real coordinator, results in a directory. docs/cluster.md
// extrapolates from its figures.
//
// All campaigns are open at once and have the same rows. The command measures
//
//   - the time from the first submission to the complete publication of all manifests, with the workers at work,
//   - then for a while: the items per second, the share of time in which a worker holds an item, the latency of a lease,
//     and the processor time per item of coordinator, NATS server and simulated workers,
//   - at the end the resident memory of coordinator and server, and the bytes of each stream.
//
// The last line is campaigns=N items=N published_s=N workers=N items_per_s=N busy=0.xx p50_ms=N p99_ms=N rss_mib=N
// server_mib=N.
func scaleModel(ctx context.Context, args []string) error {
	o := modelOptions{out: os.Stdout}
	flags := flag.NewFlagSet("scale-model", flag.ExitOnError)
	flags.IntVar(&o.campaigns, "campaigns", 1000, "open campaigns")
	flags.IntVar(&o.rows, "rows", 1000, "items of a campaign; 10000 for ten million items in all")
	flags.IntVar(&o.workers, "workers", 5000, "simulated workers")
	flags.IntVar(&o.processes, "processes", 5, "processes of the workers")
	flags.DurationVar(&o.item, "item", 30*time.Second, "mean time for which a worker holds an item")
	flags.DurationVar(&o.during, "during", 3*time.Minute, "duration of the measurement after the publication")
	flags.StringVar(&o.program, "program", "", "a ddiff binary (default: a new build)")
	flags.StringVar(&o.keep, "keep", "", "a new directory for configuration, logs and results (default: a temporary one)")
	brief := flags.Bool("quick", false, "the small form of continuous integration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *brief {
		o = small(o)
	}
	return runModel(ctx, o)
}

// runModel measures and prints.
func runModel(ctx context.Context, o modelOptions) (err error) {
	defer caught(&err)
	dir, remove, err := directory(o.keep, "ddiff-model-")
	check(err)
	defer func() { err = errors.Join(err, remove()) }()
	c := try(start(ctx, scaleOptions{servers: 1, program: o.program}, filepath.Join(dir, "cluster")))
	defer c.Stop()
	for range o.processes {
		try(c.AddWorker(ctx, "--simulate", o.item.String(), "--simulate-workers", fmt.Sprint(o.workers/o.processes)))
	}
	nc := try(c.NATS.connect(ctx, RoleCoordinator))
	defer nc.Close()
	kv := try(queue.OpenBoard(ctx, nc, nil))
	begin := time.Now()
	ids := try(submitAll(ctx, kv, o, dir))
	fmt.Fprintf(o.out, "%d campaigns submitted in %.1f s\n", len(ids), time.Since(begin).Seconds())
	check(awaitPublished(ctx, kv, ids, o))
	published, items := time.Since(begin), o.campaigns*o.rows
	fmt.Fprintf(o.out, "%d items published after %.1f s, %.0f items/s\n", items, published.Seconds(), float64(items)/published.Seconds())
	m := measureWork(ctx, c, o)
	fmt.Fprintf(o.out, "campaigns=%d items=%d published_s=%.0f workers=%d items_per_s=%.1f busy=%.2f p50_ms=%.0f p99_ms=%.0f rss_mib=%d server_mib=%d\n",
		o.campaigns, items, published.Seconds(), m.workers, m.rate, m.busy, m.p50, m.p99, m.coordinator>>20, m.server>>20)
	return nil
}

// submitAll submits all campaigns, which read one list.
func submitAll(ctx context.Context, kv *queue.Board, o modelOptions, dir string) ([]string, error) {
	if _, err := writeCampaign(dir, "model", o.rows); err != nil {
		return nil, err
	}
	var ids []string
	for i := range o.campaigns {
		spec := manifest.Default()
		spec.Name, spec.Dataset.Path = fmt.Sprintf("model-%04d", i), filepath.Join(dir, "model.csv")
		spec.Tasks = []item.Task{{Name: tasks[0]}}
		id, err := submitVerb(ctx, kv, spec)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// awaitPublished waits for the complete publication of all campaigns.
func awaitPublished(ctx context.Context, kv *queue.Board, ids []string, o modelOptions) error {
	for len(ids) > 0 {
		s, err := board.Status(ctx, kv, ids[0])
		st := s.Status
		switch {
		case err != nil:
			return err
		case st.Phase == record.PhaseRejected || st.Complete && st.Counts.Items != o.rows:
			return fmt.Errorf("campaign %s is %s with %d items: %s", st.ID, st.Phase, st.Counts.Items, st.Reason)
		case st.Complete && st.Windows > 0:
			ids = ids[1:]
			continue
		}
		if sleep(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// modelled holds the measurements of the work.
type modelled struct {
	workers             int
	rate                float64 // items/s
	busy, p50, p99      float64 // the latencies in ms
	coordinator, server int64   // resident memory in bytes
}

// measureWork measures the cluster at work for a while and stops the workers.
func measureWork(ctx context.Context, c *Cluster, o modelOptions) (m modelled) {
	pids := []int{c.Coordinators[0].PID(), c.NATS.Servers[0].PID()}
	for _, p := range c.Workers {
		pids = append(pids, p.PID())
	}
	before := try(times(pids...))
	results := func() (n uint64, err error) {
		all, err := c.NATS.Streams(ctx)
		for _, s := range all {
			if s.Name == "DDIFF_RESULT" {
				n = s.Last
			}
		}
		return n, err
	}
	first := try(results())
	begin := time.Now()
	sleep(ctx, o.during)
	check(ctx.Err())
	last := try(results())
	took, n := time.Since(begin), float64(last-first)
	after := try(times(pids...))
	m.rate = n / took.Seconds()
	var ofWorkers time.Duration
	for i := range pids[2:] {
		ofWorkers += after[i+2] - before[i+2]
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	fmt.Fprintf(o.out, "%.0f outcomes in %.0f s; processor time per outcome: coordinator %.0f µs, NATS %.0f µs, simulated workers %.0f µs\n",
		n, took.Seconds(), each(after[0]-before[0]), each(after[1]-before[1]), each(ofWorkers))
	m.coordinator = try(residentMemory(pids[0]))
	m.server = try(residentMemory(pids[1]))
	streams := try(c.NATS.Streams(ctx))
	for _, s := range streams {
		fmt.Fprintf(o.out, "stream %s: %d messages, %d bytes\n", s.Name, s.Messages, s.Bytes)
	}
	for _, p := range c.Workers {
		try(p.Stop(drainWithin))
		w := try(readReport(p.Log()))
		m.workers += w.workers
		m.busy += w.busy * float64(w.workers)
		m.p50, m.p99 = max(m.p50, w.p50), max(m.p99, w.p99)
	}
	m.busy /= float64(max(m.workers, 1))
	return m
}
