package storage_test

import (
	"context"
	"iter"
	"sync"
	"testing"

	"ddiff/storage"
)

func newLimited(t *testing.T, s storage.Store, n int) *storage.Limited {
	t.Helper()
	limited, err := storage.NewLimited(s, n)
	must(t, err)
	return limited
}

func TestLimitedContract(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) storage.Store { return newLimited(t, newDir(t, t.TempDir()), 1) })
}

// gate is a store whose calls wait for the test.
type gate struct {
	storage.Store
	entered chan string
	leave   chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{entered: make(chan string), leave: make(chan struct{})}
	g.Store = storage.NewAround(newDir(t, t.TempDir()), func(_ context.Context, action, _ string, call func() error) error {
		g.pass(action)
		return call()
	})
	return g
}

func (g *gate) pass(name string) {
	g.entered <- name
	<-g.leave
}

func (g *gate) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		g.pass("list")
		g.Store.List(ctx, prefix)(yield)
	}
}

// TestLimitedConcurrency fills all slots with each kind of call and checks that a further call waits for a slot or for
// the end of its context.
func TestLimitedConcurrency(t *testing.T) {
	t.Parallel()
	const n = 3
	calls := map[string]func(context.Context, storage.Store) error{
		"get":    func(ctx context.Context, s storage.Store) error { _, err := s.Get(ctx, "k"); return err },
		"put":    func(ctx context.Context, s storage.Store) error { return s.Put(ctx, "k", nil) },
		"create": func(ctx context.Context, s storage.Store) error { return s.Create(ctx, "k", nil) },
		"delete": func(ctx context.Context, s storage.Store) error { return s.Delete(ctx, "k") },
		"stat":   func(ctx context.Context, s storage.Store) error { _, err := s.Stat(ctx, "k"); return err },
		"list": func(ctx context.Context, s storage.Store) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			limited := newLimited(t, g, n)
			var group sync.WaitGroup
			for range n {
				group.Go(func() { call(t.Context(), limited) }) //nolint:errcheck // only the slot matters
				if entered := <-g.entered; entered != name {
					t.Errorf("%s entered the store", entered)
				}
			}
			for other, further := range calls {
				wantError(t, other+" with no place free", further(cancelled(t), limited), context.Canceled)
			}
			g.leave <- struct{}{}                           // frees one slot for one more call
			group.Go(func() { call(t.Context(), limited) }) //nolint:errcheck // only the slot matters
			<-g.entered
			for range n {
				g.leave <- struct{}{}
			}
			group.Wait()
		})
	}
}

// TestLimitedListReleasesItsSlot blocks forever if a listing does not release its slot.
func TestLimitedListReleasesItsSlot(t *testing.T) {
	t.Parallel()
	s := newLimited(t, newDir(t, t.TempDir()), 1)
	for _, key := range []string{"a", "b", "c"} {
		must(t, s.Put(t.Context(), key, []byte(key)))
	}
	for info, err := range s.List(t.Context(), "") {
		must(t, err)
		wantGet(t, s, info.Key, []byte(info.Key))
		if info.Key == "b" {
			break
		}
	}
	wantGet(t, s, "c", []byte("c"))
}

func TestNewLimitedRefusesZero(t *testing.T) {
	t.Parallel()
	if _, err := storage.NewLimited(newDir(t, t.TempDir()), 0); err == nil {
		t.Error("NewLimited with 0 slots succeeds")
	}
}
