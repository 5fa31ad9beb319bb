package gpuworker

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// beatEvery is the pause between two beats.
const beatEvery = 5 * time.Second

// beatBoard is where a worker tells about itself.
type beatBoard interface {
	Put(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// Beacon tells the cluster every five seconds that a worker is there. All fields but
// Provider and Device are required.
type Beacon struct {
	Board  beatBoard
	Worker *Worker
	// Provider and Device say what the worker computes on.
	Provider, Device string
	Logger           *slog.Logger
}

// Run tells until ctx ends, and then takes the worker's record away. The record of a worker
// that is killed stays; its time tells.
func (b Beacon) Run(ctx context.Context) {
	key := WorkerKey(b.Worker.cfg.Name)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		if err := b.tell(ctx, key); err != nil && ctx.Err() == nil {
			b.Logger.Warn("could not tell that this worker is there", "reason", err)
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		b.leave(ctx, key)
		return
	}
}

// leave takes the worker's record away.
func (b Beacon) leave(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := b.Board.Delete(ctx, key); err != nil {
		b.Logger.Debug("could not take the worker's record away", "reason", err)
	}
}

func (b Beacon) tell(ctx context.Context, key string) error {
	beat := b.Worker.Beat()
	beat.Provider, beat.Device = b.Provider, b.Device
	data, err := json.Marshal(beat)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	return b.Board.Put(ctx, key, data)
}

// Beat is what the worker tells of itself, but for its device.
func (w *Worker) Beat() manifest.Beat {
	return manifest.Beat{
		Name: w.cfg.Name, Version: w.cfg.Version, Schema: manifest.RecordSchema,
		Campaign: w.told.campaign.Load().(string), Items: int(w.told.items.Load()),
		Draining: w.told.draining.Load(), At: w.cfg.Now().UTC(),
	}
}

// WorkerKey is the key of a worker's record.
func WorkerKey(name string) string { return manifest.KeyWorkerPrefix + queue.Token(name) }
