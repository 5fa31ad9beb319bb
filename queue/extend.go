package queue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Extend renews leases for another AckWait from now, in one round trip for each connection, however many leases there
// are. It does not revive an ended lease, and the server does not report one; it skips leases that this process has
// settled. When Extend returns nil, the server has received all requests. It makes one attempt, and none after the end of ctx.
func Extend(ctx context.Context, leases ...*Lease) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("extend %d items: %w", len(leases), err)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	connections := map[*nats.Conn]bool{}
	for _, l := range leases {
		if l.settled.Load() {
			continue
		}
		if err := l.q.nc.Publish(l.msg.Reply(), []byte(ackExtend)); err != nil {
			return fmt.Errorf("extend item %s: %w", l.ID(), serverError(err))
		}
		connections[l.q.nc] = true
	}
	for nc := range connections {
		if err := nc.FlushWithContext(ctx); err != nil {
			return fmt.Errorf("extend %d items: %w", len(leases), serverError(err))
		}
	}
	return nil
}
