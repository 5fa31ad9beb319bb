package gpuworker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/gpuworker/fleet"
	"ddiff/internal/lifecycle/lifecycletest"
	"ddiff/manifest"
	"ddiff/queue"
)

func TestServicesFollowLifecycle(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	w, err := gpuworker.New(c.simulated(time.Millisecond))
	must(t, err)
	beacon := func() lifecycletest.Service {
		return &gpuworker.Beacon{Board: c.board, Worker: w, Logger: slog.New(slog.DiscardHandler)}
	}
	t.Run("beacon", func(t *testing.T) {
		lifecycletest.Stress(t, beacon)
		if keys, err := c.board.Keys(t.Context(), manifest.KeyWorkerPrefix); err != nil || len(keys) > 0 {
			t.Errorf("the stopped beacons left records %q (%v)", keys, err)
		}
	})
	t.Run("fleet", func(t *testing.T) {
		lifecycletest.Stress(t, func() lifecycletest.Service {
			f, err := fleet.New(fleet.Config{
				Board: c.board, Store: newStore(t), Sources: manifest.Files{},
				Attach: func(context.Context, string) (*queue.Queue, error) { return nil, queue.ErrNotReady },
			})
			must(t, err)
			return f
		})
	})
}
