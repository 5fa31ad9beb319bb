package board_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/queue"
)

var must = boardtest.Must

// boardWrites returns a function that counts the writes to the board since its last call.
func boardWrites(t *testing.T, nc *nats.Conn) func() uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	must(t, err)
	var last uint64
	since := func() uint64 {
		stream, err := js.Stream(t.Context(), "KV_DDIFF_BOARD")
		must(t, err)
		before := last
		last = stream.CachedInfo().State.LastSeq
		return last - before
	}
	since()
	return since
}

// TestConfirmer: a record that the first look misses is found by the second, after a write.
func TestConfirmer(t *testing.T) {
	t.Parallel()
	_, nc, b := boardtest.Start(t)
	writes := boardWrites(t, nc)
	c := board.NewConfirmer(b)
	for _, test := range []struct {
		looks  []error // what they return
		writes uint64
	}{
		{[]error{nil}, 0},
		{[]error{queue.ErrUnavailable}, 0},
		{[]error{queue.ErrNoRecord, nil}, 1},
		{[]error{queue.ErrNoRecord, queue.ErrNoRecord}, 1},
	} {
		looks := 0
		err := c.Look(t.Context(), func() error {
			looks++
			return test.looks[looks-1]
		})
		last := test.looks[len(test.looks)-1]
		if !errors.Is(err, last) || looks != len(test.looks) || writes() != test.writes {
			t.Errorf("%v: %d looks, %v", test.looks, looks, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Look(ctx, func() error { return queue.ErrNoRecord }); errors.Is(err, queue.ErrNoRecord) || !errors.Is(err, context.Canceled) {
		t.Errorf("without a write: %v", err)
	}
}

// TestConfirmerSharesWrites: who asks for many records that are missing, at once or in turn, causes few writes.
func TestConfirmerSharesWrites(t *testing.T) {
	t.Parallel()
	_, nc, b := boardtest.Start(t)
	writes := boardWrites(t, nc)
	c := board.NewConfirmer(b)
	begin := time.Now()
	missing := func() error {
		if err := c.Look(t.Context(), func() error { return queue.ErrNoRecord }); !errors.Is(err, queue.ErrNoRecord) {
			return err
		}
		return nil
	}
	var group errgroup.Group
	for range 100 {
		group.Go(missing)
	}
	must(t, group.Wait())
	atOnce := writes()
	for range 3 {
		must(t, missing())
	}
	if inTurn, most := writes(), 1+time.Since(begin).Milliseconds()/100; atOnce > 20 || int64(atOnce+inTurn) > most {
		t.Errorf("%d and %d writes, at most 20 and %d in all are permitted", atOnce, inTurn, most)
	}
}
