package cluster

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

// A request that waits for a view of a window that changes gets the view that follows it.
func TestViewOfChangedWindow(t *testing.T) {
	t.Parallel()
	_, nc, b := boardtest.Start(t)
	store, err := storage.NewDir(t.TempDir())
	boardtest.Must(t, err)
	spec, err := manifest.Parse("night", []byte("name: night\ndataset: {path: /photos}\ntasks: [denoise]\n"), "/")
	boardtest.Must(t, err)
	c, _, err := recordtest.Submit(t.Context(), b, store, spec, board.Order{}, time.Now())
	boardtest.Must(t, err)
	served := New(Config{
		Board: b, Store: store, Logger: slog.New(slog.DiscardHandler),
		Inspect: func(id string) (*queue.Queue, error) { return queue.Inspect(nc, queue.Config{Campaign: id}) },
	})
	t.Cleanup(served.Close)
	idle := lifecycle.Go(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	old := &view{id: c.ID, service: idle, ready: make(chan struct{}), ended: make(chan struct{})}
	served.views.byID[c.ID] = old
	got := make(chan error, 1)
	go func() {
		_, err := served.Throughput(t.Context(), c.ID)
		got <- err
	}()
	time.Sleep(100 * time.Millisecond) // the request waits
	old.stale.Store(true)
	old.fail(errChanged)
	if err := <-got; err != nil {
		t.Error(err)
	}
}
