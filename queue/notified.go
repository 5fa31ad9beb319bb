package queue

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// Notified returns a channel that has an element after one or more messages on a subject, until stop is called. A message of a JetStream
// stream's subject counts too. Messages may be lost, as during an outage: the caller must also look from time to time.
func Notified(nc *Conn, subject string) (events <-chan struct{}, stop func(), err error) {
	out := make(chan struct{}, 1)
	last := nc.LastError()
	sub, err := nc.Subscribe(subject, func(*nats.Msg) {
		select {
		case out <- struct{}{}:
		default:
		}
	})
	if err == nil {
		err = nc.Flush() // the server has the subscription, or has refused it
	}
	if err != nil {
		return nil, nil, fmt.Errorf("subscribe to %s: %w", subject, serverError(err))
	}
	if err := (&link{nc: nc}).denied(last, subject); err != nil {
		return nil, nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return out, func() { _ = sub.Unsubscribe() }, nil // it fails only on a closed connection
}
