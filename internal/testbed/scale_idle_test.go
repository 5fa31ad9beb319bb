package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// idleItem is the mean time of an item of the worker beside idle campaigns.
const idleItem = 15 * time.Millisecond

// idleRatio measures the share of time in which one worker holds an item beside o.idle open campaigns without work,
// divided by the share when its campaign is the only one. Each idle campaign has one message, its item or its preflight,
// which a killed worker has leased for longer than the measurement.
func idleRatio(ctx context.Context, o scaleOptions, dir string) (ratio float64, err error) {
	dir = filepath.Join(dir, "idle")
	c, err := Start(ctx, Options{
		Dir: dir, Program: o.program, Directory: true, Lease: time.Hour, Election: 10 * time.Second, Stall: 15 * time.Second,
		NATS: NATSOptions{Servers: o.servers, SyncAlways: o.sync, MaxFile: 16 << 30},
	})
	defer func() {
		c.Stop()
		if o.keep == "" {
			os.RemoveAll(dir) //nolint:errcheck // it lies in a temporary directory
		}
	}()
	if err != nil {
		return 0, err
	}
	if _, err := c.AddCoordinator(ctx); err != nil {
		return 0, err
	}
	alone, err := busyShare(ctx, c, o, "alone")
	if err != nil {
		return 0, err
	}
	if err := openIdle(ctx, c, o, dir); err != nil {
		return 0, err
	}
	beside, err := busyShare(ctx, c, o, "beside")
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(o.out, "1 worker: busy %.3f with one campaign, %.3f beside %d idle campaigns\n", alone, beside, o.idle)
	return beside / alone, nil
}

// openIdle opens campaigns of one item each, which a worker leases before it is killed.
func openIdle(ctx context.Context, c *Cluster, o scaleOptions, dir string) error {
	nc, err := c.NATS.connect(ctx, RoleCommand)
	if err != nil {
		return err
	}
	defer nc.Close()
	kv, err := queue.OpenBoard(ctx, nc)
	if err != nil {
		return err
	}
	holders, err := c.AddWorker(ctx, "--simulate", "24h", "--simulate-workers", fmt.Sprint(o.idle))
	if err != nil {
		return err
	}
	if _, err := writeCampaign(dir, "idle", 1); err != nil {
		return err
	}
	var ids []string
	for i := range o.idle {
		spec := manifest.Default()
		spec.Name, spec.Dataset.Path = fmt.Sprintf("idle-%04d", i), filepath.Join(dir, "idle.csv")
		spec.Tasks = []manifest.TaskSpec{{Name: tasks[0]}}
		rec, _, err := board.Submit(ctx, kv, spec, board.Order{}, time.Now())
		if err != nil {
			return err
		}
		ids = append(ids, rec.ID)
	}
	for idle := 0; idle < 2; idle++ { // an item may be published between two checks
		all, err := allLeased(ctx, nc, ids)
		if err != nil {
			return err
		}
		if !all {
			idle = -1
		}
		if sleep(ctx, time.Second); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	holders.Kill()
	return nil
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
func busyShare(ctx context.Context, c *Cluster, o scaleOptions, name string) (float64, error) {
	rows := 2 * int(o.besideIdle/idleItem)
	file, err := writeCampaign(c.o.Dir, name, rows)
	if err != nil {
		return 0, err
	}
	p, err := c.AddWorker(ctx, "--simulate", idleItem.String())
	if err != nil {
		return 0, err
	}
	id, err := submitCampaign(ctx, c, file)
	if err != nil {
		return 0, err
	}
	if err := awaitComplete(ctx, c, id, rows); err != nil {
		return 0, err
	}
	if sleep(ctx, o.besideIdle); ctx.Err() != nil {
		return 0, ctx.Err()
	}
	st, err := c.Status(ctx, id)
	if err != nil {
		return 0, err
	}
	if st.Counts.Pending == 0 || st.Counts.Failed+st.Counts.Dead > 0 {
		return 0, fmt.Errorf("the worker ran out of work or lost items: %+v", st.Counts)
	}
	if _, err := p.Stop(drainWithin); err != nil {
		return 0, err
	}
	w, err := readReport(p.Log())
	if err != nil {
		return 0, err
	}
	_, err = c.Output(ctx, "cancel", id, "--now")
	return w.busy, err
}
