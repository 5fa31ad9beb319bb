package queue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

// parallelRequests is the number of requests that a leader answers at a time. As many wait; others are dropped, and sent again.
const parallelRequests = 256

// Request sends a request to the leader and returns its answer. While there is none it sends the request again, so that the next leader
// may answer; a leader may receive it several times. ErrUnavailable: nobody has answered within half a minute.
func (b *Board) Request(ctx context.Context, request []byte) (answer []byte, err error) {
	err = b.withRetry(ctx, "", func(ctx context.Context) error {
		msg, err := b.nc.RequestWithContext(ctx, requestSubject, request)
		if err == nil {
			answer = msg.Data
		}
		return err
	})
	return answer, wrap(err, "ask the leader")
}

// Answer sends the results of answer to requests, as the leader, until ctx ends. Calls of answer overlap. A nil result is not sent.
func (b *Board) Answer(ctx context.Context, answer func(ctx context.Context, request []byte) []byte) error {
	requests := make(chan *nats.Msg, parallelRequests)
	sub, err := b.nc.ChanSubscribe(requestSubject, requests)
	if err != nil {
		return fmt.Errorf("answer requests: %w", serverError(err))
	}
	var group errgroup.Group
	group.SetLimit(parallelRequests)
	for {
		select {
		case <-ctx.Done():
			_ = sub.Unsubscribe() // it fails only on a closed connection
			return group.Wait()
		case msg := <-requests:
			group.Go(func() error {
				if data := answer(ctx, msg.Data); data != nil {
					_ = msg.Respond(data) // otherwise the request comes again
				}
				return nil
			})
		}
	}
}
