package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ddiff/internal/record"
)

// published holds the measurements of the publication of a manifest.
type published struct {
	items int
	took  time.Duration
	// peak is the largest resident memory of the coordinator, in bytes.
	peak int64
	// coordinator and server are processor times.
	coordinator, server time.Duration
}

func (p published) rate() float64 { return float64(p.items) / p.took.Seconds() }

func (p published) String() string {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(p.items) }
	return fmt.Sprintf("manifest of %d rows: %.1f s, %.0f items/s, coordinator %d MiB, per item %.0f µs of the coordinator and %.0f µs of a nats-server",
		p.items, p.took.Seconds(), p.rate(), p.peak>>20, each(p.coordinator), each(p.server))
}

// start starts a cluster with a directory for results and one coordinator.
func start(ctx context.Context, o scaleOptions, dir string) (*Cluster, error) {
	c, err := Start(ctx, Options{
		Dir: dir, Program: o.program, Directory: true, Lease: time.Minute, Election: 10 * time.Second, Stall: 15 * time.Second,
		NATS: NATSOptions{Servers: o.servers, SyncAlways: o.sync, MaxFile: 16 << 30},
	})
	if err != nil {
		c.Stop()
		return nil, err
	}
	if _, err := c.AddCoordinator(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// discard stops a cluster and removes its directory, unless it is kept.
func (o scaleOptions) discard(c *Cluster, dir string) {
	c.Stop()
	if o.keep == "" {
		os.RemoveAll(dir) //nolint:errcheck // it lies in a temporary directory
	}
}

// publish measures the publication of a manifest.
func publish(ctx context.Context, o scaleOptions, dir string, rows int) published {
	dir = filepath.Join(dir, fmt.Sprintf("rows-%d", rows))
	c := try(start(ctx, o, dir))
	defer o.discard(c, dir)
	file := try(writeCampaign(dir, fmt.Sprintf("rows-%d", rows), rows))
	// The worker answers the preflight and holds its first item to the end.
	try(c.AddWorker(ctx, "--simulate", "24h"))
	coordinator, server := c.Coordinators[0].PID(), c.NATS.Servers[0].PID()
	p := published{items: rows}
	before := try(times(coordinator, server))
	begin := time.Now()
	id := try(submitCampaign(ctx, c, file))
	check(awaitComplete(ctx, c, id, rows))
	p.took = time.Since(begin)
	after := try(times(coordinator, server))
	p.coordinator, p.server = after[0]-before[0], after[1]-before[1]
	p.peak = try(peakMemory(coordinator))
	return p
}

// times returns the processor times of processes.
func times(pids ...int) ([]time.Duration, error) {
	var all []time.Duration
	for _, pid := range pids {
		t, err := processorTime(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// submitCampaign submits a campaign without a canary and returns its id.
func submitCampaign(ctx context.Context, c *Cluster, file string) (string, error) {
	out, err := c.Output(ctx, "submit", file, "--canary", "0")
	return strings.TrimSpace(out), err
}

// awaitComplete waits for the complete publication of the manifest and checks its size.
func awaitComplete(ctx context.Context, c *Cluster, id string, rows int) error {
	r, err := awaitStatus(ctx, c, id, func(s record.Status) bool { return s.Complete && s.Windows > 0 || s.Phase.Ended() })
	switch {
	case err != nil:
		return err
	case r.Phase.Ended():
		return fmt.Errorf("campaign %s is %s: %s", id, r.Phase, r.Reason)
	case r.Counts.Items != rows:
		return fmt.Errorf("campaign %s has %d items, want %d", id, r.Counts.Items, rows)
	}
	return nil
}
