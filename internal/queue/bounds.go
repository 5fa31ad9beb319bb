package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// The streams of work and results reserve parts of the storage that the server and the account permit, in bytes: work half of the largest power of two
// that fits, results a quarter. Work that fills its part leaves room for what drains it: outcomes, and the records of the board.
const (
	mostStorage  = 16 << 30
	leastStorage = 1 << 20
)

// setupStreams creates the streams of a cluster; with update, it also changes existing ones. Bounds of existing streams belong to the operator.
func (l *link) setupStreams(ctx context.Context, cfg SetupConfig, update bool) error {
	work := int64(0) // the bound of the work stream
	for _, want := range cfg.streams() {
		old, exists, err := l.bound(ctx, want.Name)
		switch {
		case err != nil:
			return wrap(err, "stream %s", want.Name)
		case old > 0:
			want.MaxBytes = old
		case want.Name == workStream && (update || !exists):
			storage, err := l.reserve(ctx, want)
			if err != nil {
				return err
			}
			want.MaxBytes = storage / 2
			if err := l.setupStream(ctx, want, true); err != nil {
				return err
			}
			exists = true
		case want.Name == resultStream:
			want.MaxBytes = work / 2
		}
		if want.Name == workStream {
			work = want.MaxBytes
		}
		if exists && !update {
			continue
		}
		if err := l.setupStream(ctx, want, update); err != nil {
			return err
		}
	}
	return nil
}

// bound returns the limit of a stream in bytes, 0 or below without one.
func (l *link) bound(ctx context.Context, name string) (bytes int64, exists bool, err error) {
	err = l.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := l.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if exists = err == nil; exists {
			bytes = stream.CachedInfo().Config.MaxBytes
		}
		return err
	})
	return bytes, exists, err
}

// reserve gives a stream the largest limit that server and account accept, and returns it.
func (l *link) reserve(ctx context.Context, want jetstream.StreamConfig) (int64, error) {
	var first error
	for size := int64(mostStorage); size >= leastStorage; size /= 2 {
		want.MaxBytes = size
		err := l.setupStream(ctx, want, true)
		if err == nil || !noRoom(err) {
			return size, err
		}
		if first == nil {
			first = err
		}
	}
	return 0, fmt.Errorf("%w: JetStream has less than %d MiB for ddiff; raise max_file_store of the server, or the limit of the account: %w", ErrLimits, leastStorage>>20, first)
}

// noRoom reports whether a stream was refused for its size.
func noRoom(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return full(api) || api.ErrorCode == codeMaxBytes
}
