package main

import (
	"context"
	"errors"
	"fmt"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/telemetry"
)

// embeddedQueue is the queue server of a run, in this process.
type embeddedQueue struct {
	server *queue.Embedded
	board  *queue.Board
	work   *queue.Queue
	open   func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)
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
	nc, err := server.Connect()
	if err != nil {
		return nil, fmt.Errorf("connect to queue: %w", err)
	}
	q := &embeddedQueue{server: server}
	q.open = func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, nc, queue.Config{
			Campaign: campaign, AckWait: embeddedLease, MaxAttempts: attempts, Logger: tel.Logger, Tracer: tel.Tracer("queue"),
		})
	}
	err = queue.Setup(ctx, nc, queue.SetupConfig{Logger: tel.Logger})
	if err == nil {
		q.board, err = queue.OpenBoard(ctx, nc)
	}
	var opened error
	q.work, opened = q.open(ctx, spec.ID(), spec.Attempts)
	if err = errors.Join(err, opened); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}
