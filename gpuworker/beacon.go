package gpuworker

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// beatInterval is the time between two heartbeats.
const beatInterval = 5 * time.Second

// beatBoard holds the records of workers.
type beatBoard interface {
	Put(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// Beacon publishes the heartbeat of a worker every five seconds, and when a preflight begins, which may end the worker: its record names
// the campaign then. Only Board, Worker and Logger are required.
type Beacon struct {
	Board  beatBoard
	Worker *Worker
	// Provider and Device describe where the worker computes, Pool is its pool.
	Provider, Device, Pool string
	// Precisions are those of [job.Offer].
	Precisions []manifest.Precision
	Logger     *slog.Logger
}

// Run publishes until ctx ends. Then it deletes the worker's record, unless the worker hung: the record then names the stage. The record of
// a killed worker remains; its time shows its age.
func (b *Beacon) Run(ctx context.Context) error {
	key := record.KeyWorkerPrefix + queue.Token(b.Worker.cfg.Name)
	b.Worker.beating.Store(true)
	defer b.Worker.beating.Store(false)
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	var published chan struct{}
	for {
		if err := b.publish(ctx, key); err != nil && ctx.Err() == nil {
			b.Logger.Warn("could not publish heartbeat", "reason", err)
		}
		if published != nil {
			close(published)
			published = nil
		}
		select {
		case <-tick.C:
		case published = <-b.Worker.trial:
		case <-ctx.Done():
			b.finish(context.WithoutCancel(ctx), key)
			return ctx.Err()
		}
	}
}

// finish deletes the record of a worker that ended, or publishes its hang.
func (b *Beacon) finish(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	if b.Worker.Health() != nil {
		err = b.publish(ctx, key)
	} else {
		err = b.Board.Delete(ctx, key)
	}
	if err != nil {
		b.Logger.Debug("could not finish the worker's record", "reason", err)
	}
}

func (b *Beacon) publish(ctx context.Context, key string) error {
	beat := b.Worker.Beat()
	beat.Provider, beat.Device, beat.Pool = b.Provider, b.Device, b.Pool
	beat.Precisions = b.Precisions
	data, err := json.Marshal(beat)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beatInterval)
	defer cancel()
	return b.Board.Put(ctx, key, data)
}

// Health returns the ErrHung of a worker with a stage that exceeded its limit, and nil otherwise.
func (w *Worker) Health() error { return w.watchdog.Failure() }

// Beat returns the worker's heartbeat without the fields of its Beacon.
func (w *Worker) Beat() record.Beat {
	hung := ""
	if err := w.Health(); err != nil {
		hung = err.Error()
	}
	var refused map[string]string
	if work, ok := w.cfg.Work.(interface{ Refused() map[string]string }); ok {
		refused = work.Refused()
	}
	reason := ""
	campaign, cause := w.breaker.Suspension()
	if cause == nil {
		if cause = w.stats.unsettled.reason(); cause != nil {
			campaign = ""
		}
	}
	if cause != nil {
		reason = oneLine(cause)
	}
	return record.Beat{
		Name: w.cfg.Name, Version: w.cfg.Version, Schema: record.Schema,
		Held: w.Held(), Campaign: w.stats.campaign.Load().(string), Items: int(w.stats.settled.Load()),
		Started: w.started, Solving: w.solving.Load(), Draining: w.stats.draining.Load(), Hung: hung, Suspended: reason, SuspendedCampaign: campaign, Refused: refused, At: w.cfg.Now().UTC(),
	}
}
