// Package leadertest has a leading coordinator for tests of the HTTP API. It begins no campaign: it waits for the rows of each.
package leadertest

import (
	"context"
	"iter"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

// Lead leads until stop is called or the test ends. change changes the configuration; nil: it stays.
func Lead(t *testing.T, nc *queue.Conn, b *queue.Board, s storage.Store, change func(c *coordinator.Config)) (stop func()) {
	t.Helper()
	cfg := coordinator.Config{
		Board: b, Store: s, StoreAddress: "/store", Sources: manifest.Files{}, Tracer: noop.NewTracerProvider().Tracer(""), Logger: slog.New(slog.DiscardHandler),
		Probe: 50 * time.Millisecond, Restart: 100 * time.Millisecond, Tick: 50 * time.Millisecond,
		Open: func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
			return queue.Open(ctx, nc, queue.Config{Campaign: campaign, MaxAttempts: attempts})
		},
		Inspect: func(campaign string) (*queue.Queue, error) {
			return queue.Inspect(nc, queue.Config{Campaign: campaign})
		},
		Rows: func(ctx context.Context, _ manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
			return func(yield func(manifest.Row, error) bool) {
				<-ctx.Done()
				yield(manifest.Row{}, ctx.Err())
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	service, err := coordinator.New(cfg)
	boardtest.Must(t, err)
	boardtest.Must(t, b.Put(t.Context(), queue.KeyLeader, []byte("{}")))
	leader := lifecycle.Go(context.WithoutCancel(t.Context()), service.Lead)
	t.Cleanup(leader.Stop)
	return leader.Stop
}
