package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// A list is read again when it is old, after a write, and when a write came while it was read.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := newMemory()
	reads := 0
	list := func() int {
		got, _, err := recall(t.Context(), m, "campaign.", func() (int, []error, error) { reads++; return reads, nil, nil })
		if err != nil {
			t.Error(err)
		}
		return got
	}
	steps := []struct {
		name   string
		before func()
		want   int
	}{
		{"first", func() {}, 1},
		{"again", func() {}, 1},
		{"after a write", m.wrote, 2},
		{"old", func() { m.lists["campaign."] = remembered{time.Now().Add(-memoryAge), 1, 2, nil} }, 3},
		{"a write meanwhile", func() {
			m.wrote()
			if _, _, err := recall(t.Context(), m, "campaign.", func() (int, []error, error) { m.wrote(); return 0, nil, nil }); err != nil {
				t.Error(err)
			}
		}, 4},
	}
	for _, s := range steps {
		if s.before(); list() != s.want {
			t.Errorf("%s: %d reads, want %d", s.name, reads, s.want)
		}
	}
}

// Readers that come at once cause one reading of the board, and one that no longer wants to wait leaves.
func TestMemoryAtOnce(t *testing.T) {
	t.Parallel()
	m, reads, begun, end := newMemory(), 0, make(chan struct{}, 8), make(chan struct{})
	list := func(ctx context.Context) error {
		_, _, err := recall(ctx, m, "campaign.", func() (int, []error, error) {
			reads++
			begun <- struct{}{}
			<-end
			return reads, nil, nil
		})
		return err
	}
	var group errgroup.Group
	for range 8 {
		group.Go(func() error { return list(t.Context()) })
	}
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := list(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that leaves: %v", err)
	}
	close(end)
	if err := group.Wait(); err != nil || reads != 1 {
		t.Errorf("%d reads for 8 readers, %v", reads, err)
	}
}
