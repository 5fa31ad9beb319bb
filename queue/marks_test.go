package queue_test

import (
	"reflect"
	"testing"

	"ddiff/queue"
)

// TestMarksTravelWithReleasedItem releases an item with marks, and again without a change.
func TestMarksTravelWithReleasedItem(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{MaxAttempts: 2})
	must(t, publish(t.Context(), q, "c", "1", []byte("payload")))
	l := lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, queue.Marks{}) {
		t.Fatalf("a new item has the marks %+v", got)
	}
	want := queue.Marks{Faults: 3, Disputed: []string{"gpu 1", "größe,2"}, Passes: 2}
	must(t, l.ReleaseMarked(t.Context(), want))
	must(t, lease(t, q).Release(t.Context()))
	l = lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, want) || l.Attempt() != 1 || string(l.Payload()) != "payload" {
		t.Fatalf("marks %+v at attempt %d, want %+v at 1", got, l.Attempt(), want)
	}
	must(t, l.ReleaseMarked(t.Context(), queue.Marks{}))
	l = lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, queue.Marks{}) {
		t.Fatalf("the marks %+v were not removed", got)
	}
	must(t, l.Ack(t.Context()))
}
