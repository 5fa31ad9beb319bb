package board

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/storage"
)

// ownedStore is a store that clusters claim.
type ownedStore struct {
	t     *testing.T
	store storage.Store
}

// claim claims the store for a new process of a cluster.
func (s ownedStore) claim(b *queue.Board, name, takeOver string) (*Owner, string, error) {
	s.t.Helper()
	o := &Owner{
		Board: b, Store: s.store, Record: record.Cluster{Schema: record.Schema, Store: "dir", AckWait: time.Second},
		Coordinator: name, TakeOver: takeOver, Interval: 20 * time.Millisecond,
		Now: func() time.Time { return time.Unix(1e9, 0) }, Logger: slog.New(slog.DiscardHandler),
	}
	id, err := o.Claim(s.t.Context())
	return o, id, err
}

// own is claim that succeeds.
func (s ownedStore) own(b *queue.Board, name, takeOver string) (*Owner, string) {
	s.t.Helper()
	o, id, err := s.claim(b, name, takeOver)
	boardtest.Must(s.t, err)
	return o, id
}

// refused expects an error that has all words.
func refused(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	missing := func(word string) bool { return err == nil || !strings.Contains(err.Error(), word) }
	if !errors.Is(err, ErrOtherCluster) || slices.ContainsFunc(words, missing) {
		t.Errorf("%s: %v, want ErrOtherCluster with %q", what, err, words)
	}
}

// TestAttackTwoClusters claims the store of one cluster for another one: after the end of its term, in its silence, with a wrong name, and
// again after a person has moved the store.
func TestAttackTwoClusters(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	boardtest.Must(t, err)
	s := ownedStore{t, dir}
	_, _, first := boardtest.Start(t)
	_, _, second := boardtest.Start(t)
	leader, a := s.own(first, "a", "")
	if _, again := s.own(first, "standby", ""); again != a || a == "" {
		t.Errorf("another coordinator of the cluster: %q, want %q", again, a)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // as by SIGTERM: the term has ended, and nobody leads
	boardtest.Must(t, leader.Guard(ctx))
	_, _, err = s.claim(second, "b", "")
	refused(t, "a second cluster", err, a, "coordinator a named it at 2001-09-09T01:46:40Z", "--store", "--take-over-store "+a)
	_, _, err = s.claim(second, "b", "other")
	refused(t, "a wrong name", err, "--take-over-store "+a)
	refused(t, "a command of the second cluster", CheckStore(t.Context(), second, dir), a)

	_, b := s.own(second, "b", a)
	if b == a || b == "" {
		t.Errorf("the store has the name %q after it was taken from %q", b, a)
	}
	const taken = "coordinator b took it over from "
	refused(t, "the former owner in its term", leader.Guard(t.Context()), taken+a, "2001-09-09")
	_, _, err = s.claim(first, "a", "")
	refused(t, "the former owner", err, taken+a)
	refused(t, "a command of the former owner", CheckStore(t.Context(), first, dir), taken+a)
	boardtest.Must(t, CheckStore(t.Context(), second, dir))
	if _, again := s.own(second, "b", a); again != b {
		t.Errorf("the same flag again: %q, want %q", again, b)
	}
	_, back := s.own(first, "a", b)
	_, _, err = s.claim(second, "b", a)
	refused(t, "a supervisor with the flag of long ago", err, back, "coordinator a took it over from "+b)
}

// TestOwnerWithoutBoard: a cluster keeps its store after a loss of all data of NATS while one of its coordinators runs, also one that has never led.
func TestOwnerWithoutBoard(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	boardtest.Must(t, err)
	s := ownedStore{t, dir}
	_, _, kv := boardtest.Start(t)
	leader, id := s.own(kv, "a", "")
	standby := &Owner{Board: kv, Store: dir, Coordinator: "standby", Interval: time.Hour, Logger: slog.New(slog.DiscardHandler)}
	background(t, standby.Learn, func() bool { return standby.known.Load() != nil })
	lose := func() { boardtest.Must(t, kv.Delete(t.Context(), record.KeyCluster)) }
	for name, o := range map[string]*Owner{"leader": leader, "standby": standby} {
		lose()
		if again, err := o.Claim(t.Context()); err != nil || again != id {
			t.Errorf("%s: %q, %v, want %q", name, again, err, id)
		}
	}
	lose()
	_, _, err = s.claim(kv, "new", "")
	refused(t, "a new process", err, "--take-over-store "+id)
	boardtest.Must(t, dir.Delete(t.Context(), ownerKey(1)))
	background(t, leader.Guard, func() bool {
		last, err := readOwner(t.Context(), dir)
		boardtest.Must(t, err)
		return last.ID == id
	})
}

// lastStore is a store whose Create is the last call of a process, before or after its effect.
type lastStore struct {
	storage.Store
	after bool
}

func (s lastStore) Create(ctx context.Context, key string, data []byte) error {
	if s.after {
		_ = s.Store.Create(ctx, key, data)
	}
	return context.Canceled
}

// TestOwnerDiesInClaim: a process that dies between the board and the store, or loses NATS, leaves a store that the next one can claim.
func TestOwnerDiesInClaim(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		dir, err := storage.NewDir(t.TempDir())
		boardtest.Must(t, err)
		s := ownedStore{t, dir}
		_, nc, first := boardtest.Start(t)
		_, _, second := boardtest.Start(t)
		die := func(b *queue.Board, takeOver string) {
			t.Helper()
			if _, _, err := (ownedStore{t, lastStore{dir, after}}).claim(b, "a", takeOver); !errors.Is(err, context.Canceled) {
				t.Errorf("a process that dies: %v", err)
			}
		}
		restore := boardtest.CutOff(t, nc)
		if _, _, err := s.claim(first, "cut off", ""); err == nil {
			t.Error("a process without NATS has claimed the store")
		}
		restore()
		die(first, "")
		_, a := s.own(first, "again", "")
		die(second, a)
		_, b := s.own(second, "again", a)
		if _, again := s.own(second, "again", ""); again != b || a == b {
			t.Errorf("the name is %q, then %q, of the former cluster %q", b, again, a)
		}
	}
}

// TestForeignOwners: keys that workers may write, or that are no names, name no owner.
func TestForeignOwners(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	boardtest.Must(t, err)
	_, _, kv := boardtest.Start(t)
	s := ownedStore{t, dir}
	for _, key := range []string{"items/9.json", "000009/items/9.json", "9.json", "-00009.json", "000009.json.old"} {
		boardtest.Must(t, dir.Put(t.Context(), OwnerFolder+key, []byte(`{"id":"evil"}`)))
	}
	_, id := s.own(kv, "a", "")
	if _, again := s.own(kv, "b", ""); again != id || id == "evil" {
		t.Errorf("the name is %q, then %q", id, again)
	}
	boardtest.Must(t, CheckStore(t.Context(), kv, dir))
}

// background runs f until a condition holds.
func background(t *testing.T, f func(context.Context) error, holds func() bool) {
	t.Helper()
	s := lifecycle.Go(t.Context(), f)
	defer s.Stop()
	for tick := time.NewTicker(time.Millisecond); !holds(); <-tick.C {
		if t.Context().Err() != nil {
			return
		}
	}
}
