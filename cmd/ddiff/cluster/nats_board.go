package cluster

import (
	"context"
	"log/slog"

	"ddiff/queue"
)

// withBoard connects to a cluster, calls use with its board, and disconnects.
func (f natsFlags) withBoard(ctx context.Context, use func(b *queue.Board) error) error {
	return f.withQueue(ctx, func(b *queue.Board, _ func(string) (*queue.Queue, error)) error { return use(b) })
}

// withQueue is withBoard with a function that opens the queue of a campaign as well.
func (f natsFlags) withQueue(ctx context.Context, use func(b *queue.Board, inspect func(campaign string) (*queue.Queue, error)) error) error {
	if f.role == "" {
		f.role = "command"
	}
	nc, err := f.connect(ctx, "ddiff-command", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := queue.OpenBoard(ctx, nc)
	if err != nil {
		return err
	}
	return use(b, func(campaign string) (*queue.Queue, error) {
		return queue.Inspect(nc, queue.Config{Campaign: campaign})
	})
}
