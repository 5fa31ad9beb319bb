package testbed

import (
	"context"
	"time"
)

// The range of the duration of an outage.
const (
	outageLeast = 30 * time.Second
	outageMost  = 35 * time.Second
)

// hitNATS performs a fault of the NATS servers.
func (f *fleet) hitNATS(ctx context.Context, x fault, began func(target string)) error {
	switch x.kind {
	case streamDelete:
		return f.deleteStream(ctx, began)
	case natsOutage:
		began("all servers")
		f.c.NATS.Kill()
		sleep(ctx, x.lasts(outageLeast, outageMost))
		for _, p := range f.c.NATS.Servers {
			if err := p.Start(); err != nil {
				return err
			}
		}
		for i := range f.c.NATS.Servers {
			if err := f.c.NATS.Ready(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	return f.killServer(ctx, x, began)
}

// killServer kills a NATS server, restarts it and waits until it has caught up.
func (f *fleet) killServer(ctx context.Context, x fault, began func(target string)) error {
	var leader int
	var err error
	for range 100 { // an election may be under way
		if leader, err = f.c.NATS.StreamLeader(ctx, StreamWork); err == nil || ctx.Err() != nil {
			break
		}
		sleep(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return err
	}
	i := leader
	if n := len(f.c.NATS.Servers); x.kind == natsKill {
		i = (leader + 1 + int(x.pick%uint64(n-1))) % n
	}
	p := f.c.NATS.Servers[i]
	began(p.Name)
	p.Kill()
	sleep(ctx, x.lasts(time.Second, 5*time.Second))
	if err := p.Start(); err != nil {
		return err
	}
	return f.c.NATS.Ready(ctx, i)
}

// deleteStream deletes the work stream.
func (f *fleet) deleteStream(ctx context.Context, began func(target string)) error {
	var err error
	for range 100 { // another fault may just have deleted it
		if err = f.c.NATS.DeleteStream(ctx, StreamWork); err == nil {
			began(StreamWork)
			return nil
		}
		sleep(ctx, 200*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}
