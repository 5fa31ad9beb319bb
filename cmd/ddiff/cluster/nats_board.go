package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/internal/cli"
	"ddiff/queue"
)

// withBoard connects to a cluster, calls use with its board, and disconnects.
func (f natsFlags) withBoard(ctx context.Context, use func(b *queue.Board) error) error {
	return f.withQueue(ctx, "", func(b *queue.Board, _ *queue.Queue) error { return use(b) })
}

// withCampaign is withBoard for a command on one campaign. An archived campaign returns to the board first.
func (f natsFlags) withCampaign(ctx context.Context, id string, use func(b *queue.Board) error) error {
	return f.withBoard(ctx, func(b *queue.Board) error {
		if err := archive.Recall(ctx, b, id); err != nil {
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

// unknownCampaign turns a missing record, or a refused recall, into a usage error with a remedy. Without a coordinator it is
// not known whether the archive has the campaign.
func unknownCampaign(id string, err error) error {
	switch {
	case errors.Is(err, archive.ErrNoLeader):
		return fmt.Errorf("campaign %s is not on the board, and the archive needs a coordinator: %w; start one: ddiff coordinator", id, err)
	case errors.Is(err, board.ErrRefused):
		return cli.Usage(err)
	}
	if errors.Is(err, queue.ErrNoRecord) || errors.Is(err, queue.ErrBadName) {
		return cli.Usage(fmt.Errorf("unknown campaign %s; see: ddiff list --all", id))
	}
	return err
}
