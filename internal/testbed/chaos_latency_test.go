package testbed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The slow network: 100 ms from a worker's request to the answer of NATS. A batch takes 6.4 s, longer than the lease.
const (
	latencyEach  = 50 // ms in each direction
	latencyBatch = 64
	latencyItems = 192
	latencyItem  = 100 * time.Millisecond
	latencyLimit = 2 * time.Minute
)

// runLatency runs simulated work on a worker with a slow network to NATS. No lease expires: no item is solved twice.
func runLatency(ctx context.Context, o chaosOptions, dir string, say func(format string, args ...any)) (f figures, err error) {
	defer caught(&err)
	ctx, cancel := context.WithTimeout(ctx, latencyLimit)
	defer cancel()
	c, err := Start(ctx, Options{Dir: dir, Program: o.program, Directory: true, Lease: lease, Election: term, Stall: stall})
	defer c.Stop()
	check(err)
	toxic, address, err := startToxic(ctx, "nats", strings.TrimPrefix(c.NATS.URL(""), "nats://"))
	check(err)
	defer toxic.Stop()
	for _, stream := range []string{"upstream", "downstream"} {
		check(addToxic(toxic, "latency", stream, fmt.Sprintf(`{"latency": %d}`, latencyEach)))
	}
	try(c.AddCoordinator(ctx))
	p := c.NewWorker("--simulate", latencyItem.String(), "--batch", fmt.Sprint(latencyBatch), "--log-format", "json")
	p.env = append(p.env, "DDIFF_NATS_URL=nats://"+address)
	check(p.Start())
	check(p.WaitLog(ctx, "worker is ready"))
	file := try(writeCampaign(dir, "latency", latencyItems))
	id := try(submitCampaign(ctx, c, file))
	out, err := c.Output(ctx, "status", "--watch", id)
	if err != nil && !strings.HasPrefix(lastLine(out), "done=") {
		return f, fmt.Errorf("watch campaign %s: %w", id, err)
	}
	st := try(c.Status(ctx, id))
	logs := try(readLogs(c.Workers))
	say("%s: %s; redelivered=%d solved_again=%d", id, lastLine(out), logs.redelivered, logs.again)
	n := st.Counts
	f = figures{items: latencyItems, done: n.Done, dead: n.Dead, lost: latencyItems - n.Done - n.Dead, redelivered: logs.redelivered}
	if n.Done != latencyItems || logs.again > 0 || logs.redelivered > 0 {
		err = fmt.Errorf("campaign %s: %+v, %d redeliveries, %d items solved again; want %d done and no redelivery",
			id, n, logs.redelivered, logs.again, latencyItems)
	}
	return f, err
}

// TestChaosLatency runs a worker with a slow network to NATS.
func TestChaosLatency(t *testing.T) {
	t.Parallel()
	runBeside(t, runLatency)
}
