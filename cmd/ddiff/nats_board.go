package main

import (
	"context"
	"log/slog"

	"ddiff/coordinator"
	"ddiff/queue"
)

// withBoard connects to a cluster, calls use with its board, and disconnects.
func (f natsFlags) withBoard(ctx context.Context, use func(b *queue.Board) error) error {
	return f.withQueue(ctx, "", func(b *queue.Board, _ *queue.Queue) error { return use(b) })
}

// withCampaign is withBoard for a command on one campaign. An archived campaign returns to the board first.
func (f natsFlags) withCampaign(ctx context.Context, id string, use func(b *queue.Board) error) error {
	return f.withBoard(ctx, func(b *queue.Board) error {
		if err := coordinator.Recall(ctx, b, id); err != nil {
			return unknownCampaign(id, err)
		}
		return use(b)
	})
}

// withQueue is withBoard with the queue of a campaign as well, nil for the campaign "".
func (f natsFlags) withQueue(ctx context.Context, campaign string, use func(b *queue.Board, q *queue.Queue) error) error {
	f.role = "command"
	nc, err := f.connect(ctx, "ddiff-command", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := queue.OpenBoard(ctx, nc)
	if err != nil {
		return err
	}
	if campaign == "" {
		return use(b, nil)
	}
	q, err := queue.Inspect(nc, queue.Config{Campaign: campaign})
	if err != nil {
		return err
	}
	return use(b, q)
}
