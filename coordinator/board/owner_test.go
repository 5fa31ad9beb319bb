package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

var must = boardtest.Must

// TestAttackTwoClusters claims one store for two clusters: the second one is refused while the first one lives, and takes the store over after its
// end. Then the first one is refused.
func TestAttackTwoClusters(t *testing.T) {
	t.Parallel()
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	_, _, first := boardtest.Start(t)
	_, _, second := boardtest.Start(t)
	owner := func(name string, b *queue.Board) *board.Owner {
		return &board.Owner{Board: b, Store: store, Coordinator: name, Interval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	}
	publish := func(b *queue.Board, id string) {
		data, err := json.Marshal(manifest.Cluster{Schema: manifest.RecordSchema, ID: id, Store: "dir", AckWait: time.Second})
		must(t, err)
		must(t, b.Put(t.Context(), manifest.KeyCluster, data))
	}
	leader := owner("a", first)
	id, err := leader.Claim(t.Context())
	must(t, err)
	publish(first, id)
	if again, err := owner("standby", first).Claim(t.Context()); err != nil || again != id || id == "" {
		t.Errorf("another coordinator of the cluster: %q, %v, want %q", again, err, id)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leader.Keep(ctx) }()
	_, err = owner("b", second).Claim(t.Context())
	if !errors.Is(err, board.ErrOtherCluster) || !strings.Contains(err.Error(), "coordinator a") || !strings.Contains(err.Error(), "--store") {
		t.Errorf("a second cluster on the store: %v", err)
	}
	must(t, first.Delete(t.Context(), manifest.KeyCluster))
	if again, err := leader.Claim(t.Context()); err != nil || again != id {
		t.Errorf("a cluster that has lost its board: %q, %v", again, err)
	}
	publish(first, id)
	end()
	must(t, <-ended)
	next, err := owner("b", second).Claim(t.Context())
	if err != nil || next == id || next == "" {
		t.Errorf("a new cluster after the end of the last one: %q, %v", next, err)
	}
	publish(second, next)
	for name, check := range map[string]func() error{
		"claim": func() error { _, err := leader.Claim(t.Context()); return err },
		"keep":  func() error { return leader.Keep(t.Context()) },
		"check": func() error { return board.CheckStore(t.Context(), first, store) },
	} {
		if err := check(); !errors.Is(err, board.ErrOtherCluster) {
			t.Errorf("%s by the cluster that has lost the store: %v", name, err)
		}
	}
	must(t, board.CheckStore(t.Context(), second, store))
}
