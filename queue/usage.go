package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// StreamUsage is the size of a stream and its limits; a limit of 0 or below is none.
type StreamUsage struct {
	Name            string
	Messages, Bytes uint64
	MaxMessages     int64
	MaxBytes        int64
}

// Fill is the larger of the used shares of both limits, from 0; 0 without limits.
func (u StreamUsage) Fill() float64 {
	fill := 0.0
	if u.MaxMessages > 0 {
		fill = float64(u.Messages) / float64(u.MaxMessages)
	}
	if u.MaxBytes > 0 {
		fill = max(fill, float64(u.Bytes)/float64(u.MaxBytes))
	}
	return fill
}

// Results reports whether the stream is that of the results.
func (u StreamUsage) Results() bool { return u.Name == resultStream }

// Usage returns the sizes of the streams of work, results and dead letters.
func Usage(ctx context.Context, nc *nats.Conn) ([]StreamUsage, error) {
	l, err := newLink(nc, nil, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("measure streams: %w", err)
	}
	var all []StreamUsage
	for _, name := range []string{workStream, resultStream, deadStream} {
		err := l.withRetry(ctx, "", func(ctx context.Context) error {
			stream, err := l.js.Stream(ctx, name)
			if err != nil {
				return err
			}
			info := stream.CachedInfo() // fresh
			all = append(all, StreamUsage{
				Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
				MaxMessages: info.Config.MaxMsgs, MaxBytes: info.Config.MaxBytes,
			})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("measure stream %s: %w", name, err)
		}
	}
	return all, nil
}

// Depth has the counts of Queue.Depth.
type Depth struct{ Pending, InFlight uint64 }

// Depths returns those of all campaigns that have a queue, with one request for each 256 of them.
func Depths(ctx context.Context, nc *nats.Conn) (map[string]Depth, error) {
	l, err := newLink(nc, nil, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("measure queues: %w", err)
	}
	all := map[string]Depth{}
	err = l.withRetry(ctx, "", func(ctx context.Context) error {
		clear(all)
		stream, err := l.js.Stream(ctx, workStream)
		if notFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			name, ours := strings.CutPrefix(info.Name, durablePrefix)
			if campaign, err := untoken(name); ours && err == nil {
				all[campaign] = Depth{info.NumPending, uint64(max(info.NumAckPending, 0))}
			}
		}
		return list.Err()
	})
	return all, wrap(err, "measure queues")
}
