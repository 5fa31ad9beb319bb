package testbed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// idleItem is the mean time of an item of the worker beside idle campaigns.
const idleItem = 15 * time.Millisecond

// idleRatio measures the share of time in which one worker holds an item beside o.idle open campaigns without work,
// divided by the share when its campaign is the only one. Each idle campaign has one message, its item or its preflight,
// which a killed worker has leased for longer than the measurement.
func idleRatio(ctx context.Context, o scaleOptions, dir string) (ratio float64) {
	dir = filepath.Join(dir, "idle")
	c, err := Start(ctx, Options{
		Dir: dir, Program: o.program, Directory: true, Lease: time.Hour, Election: 10 * time.Second, Stall: 15 * time.Second,
		NATS: NATSOptions{Servers: o.servers, SyncAlways: o.sync, MaxFile: 16 << 30},
	})
	defer o.discard(c, dir)
	check(err)
	try(c.AddCoordinator(ctx))
	alone := busyShare(ctx, c, o, "alone")
	openIdle(ctx, c, o, dir)
	beside := busyShare(ctx, c, o, "beside")
	fmt.Fprintf(o.out, "1 worker: busy %.3f with one campaign, %.3f beside %d idle campaigns\n", alone, beside, o.idle)
	return beside / alone
}

// openIdle opens campaigns of one item each, which a worker leases before it is killed.
func openIdle(ctx context.Context, c *Cluster, o scaleOptions, dir string) {
	nc := try(c.NATS.connect(ctx, RoleCoordinator))
	defer nc.Close()
	kv := try(queue.OpenBoard(ctx, nc, nil))
	holders := try(c.AddWorker(ctx, "--simulate", "24h", "--simulate-workers", fmt.Sprint(o.idle)))
	try(writeCampaign(dir, "idle", 1))
	var ids []string
	for i := range o.idle {
		spec := manifest.Default()
		spec.Name, spec.Dataset.Path = fmt.Sprintf("idle-%04d", i), filepath.Join(dir, "idle.csv")
		spec.Tasks = []item.Task{{Name: tasks[0]}}
		ids = append(ids, try(submitVerb(ctx, kv, spec)))
	}
	for idle := 0; idle < 2; idle++ { // an item may be published between two checks
		if !try(allLeased(ctx, nc, ids)) {
			idle = -1
		}
		sleep(ctx, time.Second)
		check(ctx.Err())
	}
	holders.Kill()
}

// allLeased reports whether every campaign has nothing but one leased message: its item or its preflight.
func allLeased(ctx context.Context, nc *queue.Conn, ids []string) (bool, error) {
	for _, id := range ids {
		q, err := queue.Inspect(nc, queue.Config{Campaign: id})
		if err != nil {
			return false, err
		}
		pending, leased, err := q.Depth(ctx)
		if errors.Is(err, queue.ErrNotReady) || err == nil && (pending > 0 || leased != 1) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// busyShare runs one worker on a campaign for a while and returns the share of time in which it held an item.
func busyShare(ctx context.Context, c *Cluster, o scaleOptions, name string) float64 {
	rows := 2 * int(o.besideIdle/idleItem)
	file := try(writeCampaign(c.o.Dir, name, rows))
	p := try(c.AddWorker(ctx, "--simulate", idleItem.String()))
	id := try(submitCampaign(ctx, c, file))
	check(awaitComplete(ctx, c, id, rows))
	sleep(ctx, o.besideIdle)
	check(ctx.Err())
	st := try(c.Status(ctx, id))
	if st.Counts.Pending == 0 || st.Counts.Failed+st.Counts.Dead > 0 {
		check(fmt.Errorf("the worker ran out of work or lost items: %+v", st.Counts))
	}
	try(p.Stop(drainWithin))
	w := try(readReport(p.Log()))
	try(c.Output(ctx, "cancel", id, "--now"))
	return w.busy
}
