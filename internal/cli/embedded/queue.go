package embedded

import (
	"context"
	"fmt"
	"time"

	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/telemetry"
)

// embeddedDedup is short because a server in this process answers at once, and because thousands of ids per second
// would fill the memory.
const embeddedDedup = 2 * time.Second

// embeddedQueue is the queue server of a run, in this process. Coordinator and worker have a connection each: a window
// that is being published must not delay the worker.
type embeddedQueue struct {
	server *queue.Embedded
	board  *queue.Board
	open   func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)
	work   *queue.Queue // of the worker
}

// openEmbeddedQueue starts a server with its files in dir, and opens the campaign's queue.
func openEmbeddedQueue(ctx context.Context, dir string, spec *manifest.Spec, tel *telemetry.Telemetry) (_ *embeddedQueue, err error) {
	server, err := queue.StartEmbedded(ctx, queue.EmbeddedConfig{Dir: dir, Logger: tel.Logger})
	if err != nil {
		return nil, fmt.Errorf("start queue: %w", err)
	}
	defer func() {
		if err != nil {
			server.Stop()
		}
	}()
	coordinator, err := server.Connect()
	if err != nil {
		return nil, err
	}
	worker, err := server.Connect()
	if err != nil {
		return nil, err
	}
	if err := queue.Setup(ctx, coordinator, queue.SetupConfig{DedupWindow: embeddedDedup, Logger: tel.Logger}); err != nil {
		return nil, err
	}
	q := &embeddedQueue{server: server}
	if q.board, err = queue.OpenBoard(ctx, coordinator, nil); err != nil {
		return nil, err
	}
	config := func(campaign string, attempts int) queue.Config {
		return queue.Config{
			Campaign: campaign, AckWait: embeddedLease, MaxAttempts: attempts, Logger: tel.Logger, Tracer: tel.Tracer("queue"),
		}
	}
	q.open = func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, coordinator, config(campaign, attempts))
	}
	q.work, err = queue.Open(ctx, worker, config(spec.ID(""), spec.Attempts))
	return q, err
}
