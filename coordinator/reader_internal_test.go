package coordinator

import (
	"testing"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/restore/item"
)

// The first window with items and the last change of the dataset are known.
func TestAddedWindows(t *testing.T) {
	t.Parallel()
	s := windows{sound: -1}
	s.add(&shard.Window{Header: shard.Header{Items: 3}, Failed: make([]item.Result, 3)})
	if s.stored != 1 || s.next.Item != 3 || s.sound != -1 || s.complete {
		t.Errorf("a window without items: %+v", s)
	}
	s.add(&shard.Window{Header: shard.Header{Number: 1, Item: 3, Items: 1, Changed: "1 row is new"}, Items: []item.Item{{}}})
	s.add(&shard.Window{Header: shard.Header{Number: 2, Item: 4, Items: 1, Last: true}, Items: []item.Item{{}}})
	if s.stored != 3 || s.next.Item != 5 || s.sound != 1 || s.warning != "1 row is new" || !s.complete {
		t.Errorf("the last window: %+v", s)
	}
}

// Each outcome counts once, also if it is read again.
func TestCountedOutcomes(t *testing.T) {
	t.Parallel()
	f := follower{counted: 4}
	for i, want := range []bool{false, true, false, true} {
		seq := []uint64{4, 5, 5, 9}[i]
		f.next(queue.Result{Seq: seq, Behind: 2})
		if got := f.first(seq); got != want || f.seen != seq || f.lag() != 2 {
			t.Errorf("outcome %d: counts %t, %+v", seq, got, f)
		}
	}
}

// With much open work, the reader makes one window per tick.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		open   int
		ticked bool
		want   bool
	}{{9, false, true}, {10, false, false}, {10, true, true}} {
		d := reader{limit: 9, ticked: tt.ticked}
		if got := d.may(tt.open); got != tt.want {
			t.Errorf("%d open items, ticked %t: %t", tt.open, tt.ticked, got)
		}
	}
}
