package queue_test

import (
	"testing"
	"time"

	"ddiff/queue"
)

func TestPause(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q, other := open(t, server, queue.Config{}), open(t, server, queue.Config{Campaign: "other"})
	must(t, q.Resume(t.Context()))
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, publish(t.Context(), other, "c", "3", nil))
	held := lease(t, q)
	must(t, q.Pause(t.Context()))
	must(t, q.Pause(t.Context()))
	wantNone(t, q, 100*time.Millisecond)
	// Leases stay valid, and Open does not end the pause.
	must(t, held.Ack(t.Context()))
	wantNone(t, open(t, server, queue.Config{AckWait: time.Minute}), 100*time.Millisecond)
	must(t, lease(t, other).Ack(t.Context()))
	must(t, q.Resume(t.Context()))
	if l := lease(t, q); l.ID() != "2" || l.Attempt() != 1 {
		t.Fatalf("item %s, attempt %d, want item 2 at attempt 1", l.ID(), l.Attempt())
	}
}

func TestDropAndRemove(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q, other := open(t, server, queue.Config{}), open(t, server, queue.Config{Campaign: "other"})
	must(t, publish(t.Context(), other, "c", "1", nil))
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}, {Class: "c", ID: "3"}}))
	buried, held := lease(t, q), lease(t, q)
	must(t, buried.Bury(t.Context(), queue.Dead{ID: "1", Reason: "r"}))
	for range 2 {
		must(t, q.Drop(t.Context()))
		wantExists(t, q, false)
	}
	mustBe(t, q.Pause(t.Context()), queue.ErrNotReady)
	mustBe(t, q.Resume(t.Context()), queue.ErrNotReady)
	_, err := q.Lease(t.Context(), 1, patience)
	mustBe(t, err, queue.ErrNotReady)
	// A worker can still settle a leased item.
	must(t, held.PublishResult(t.Context(), []byte("late")))
	must(t, held.Ack(t.Context()))
	nc := join(t, server)
	_, err = queue.Attach(t.Context(), nc, queue.Config{Campaign: "camp"})
	mustBe(t, err, queue.ErrNotReady)
	look, err := queue.Inspect(nc, queue.Config{Campaign: "camp"})
	must(t, err)
	_, err = look.Lease(t.Context(), 1, patience)
	mustBe(t, err, queue.ErrNotReady)
	if letters := deadLetters(t, look); len(letters) != 1 || results(t, look, 1)["2"] != "late" {
		t.Fatalf("dead letters %+v or results are wrong after Drop", letters)
	}

	q = open(t, server, queue.Config{}) // creates the campaign again
	wantExists(t, q, true)
	wantDepth(t, q, 0, 0)
	must(t, publish(t.Context(), q, "c", "3", nil))
	must(t, lease(t, q).Ack(t.Context()))
	for range 2 {
		must(t, q.Remove(t.Context()))
	}
	last, err := q.LastResult(t.Context())
	must(t, err)
	if letters := deadLetters(t, q); len(letters) != 0 || last != 0 {
		t.Fatalf("dead letters %+v, last result %d, want nothing", letters, last)
	}
	wantDepth(t, other, 1, 0)
}

func wantExists(t *testing.T, q *queue.Queue, want bool) {
	t.Helper()
	there, err := q.Exists(t.Context())
	must(t, err)
	if there != want {
		t.Fatalf("the queue exists: %t, want %t", there, want)
	}
}

// TestDeletedWorkStreamIsRestored deletes the work stream in the middle of a campaign.
func TestDeletedWorkStreamIsRestored(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{MaxAttempts: 5, AckWait: 20 * time.Second})
	nc := join(t, server)
	worker := attach(t, nc, queue.Config{Campaign: "camp"})
	if c := worker.Config(); c.MaxAttempts != 5 || c.AckWait != 20*time.Second {
		t.Fatalf("the worker's settings are %+v", c)
	}
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}, {Class: "c", ID: "3"}}))
	acked, held, released := lease(t, worker), lease(t, worker), lease(t, worker)
	must(t, acked.PublishResult(t.Context(), []byte("r")))

	js := streamsOf(t, nc)
	must(t, js.DeleteStream(t.Context(), "DDIFF_WORK"))
	wantExists(t, q, false)
	_, err := worker.Lease(t.Context(), 1, patience)
	mustBe(t, err, queue.ErrNotReady)
	mustBe(t, publish(t.Context(), q, "c", "2", nil), queue.ErrNotReady)
	mustBe(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "2"}}), queue.ErrNotReady)
	must(t, acked.Ack(t.Context()))
	must(t, queue.Extend(t.Context(), held))

	q = open(t, server, queue.Config{MaxAttempts: 5})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "2"}, {Class: "c", ID: "3"}}))
	// Acknowledgements of the old stream do not affect the new stream.
	must(t, held.Ack(t.Context()))
	wantDepth(t, q, 2, 0)
	// The released item is delivered twice, because it was also published again.
	must(t, released.Release(t.Context()))
	for range 3 {
		l := lease(t, worker)
		if l.Attempt() != 1 {
			t.Fatalf("item %s at attempt %d, want 1", l.ID(), l.Attempt())
		}
		must(t, l.PublishResult(t.Context(), []byte("r")))
		must(t, l.Ack(t.Context()))
	}
	wantDepth(t, q, 0, 0)
	if got := results(t, q, 3); len(got) != 3 {
		t.Fatalf("results %v, want three items", got)
	}
}

// TestNewRoundIsNoDuplicate republishes items within the deduplication window.
func TestNewRoundIsNoDuplicate(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	var last uint64
	for round := range 3 {
		batch := []queue.Work{{Class: "c", ID: "1", Round: round}}
		must(t, q.PublishBatch(t.Context(), batch))
		mustBe(t, q.PublishBatch(t.Context(), batch), queue.ErrDuplicate)
		l := lease(t, q)
		if l.Round() != round || l.Attempt() != 1 {
			t.Fatalf("round %d, attempt %d, want round %d at attempt 1", l.Round(), l.Attempt(), round)
		}
		must(t, l.PublishResult(t.Context(), []byte("r")))
		must(t, l.Bury(t.Context(), queue.Dead{ID: "1"}))
		for r, err := range q.Results(t.Context(), last) {
			must(t, err)
			if r.Round != round || r.Seq <= last {
				t.Fatalf("result of round %d, number %d after %d, want round %d", r.Round, r.Seq, last, round)
			}
			last = r.Seq
			break
		}
		newest, err := q.LastResult(t.Context())
		must(t, err)
		if newest != last {
			t.Fatalf("the last result is number %d, want %d", newest, last)
		}
	}
	letters := deadLetters(t, q)
	if len(letters) != 3 || letters[2].Round != 2 {
		t.Fatalf("dead letters %+v, want one per round", letters)
	}
	must(t, q.RemoveDead(t.Context(), letters[1].Seq))
	must(t, q.RemoveDead(t.Context(), letters[1].Seq))
	if left := deadLetters(t, q); len(left) != 2 || left[1].Seq != letters[2].Seq {
		t.Fatalf("dead letters %+v remain", left)
	}
	mustBe(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1", Round: -1}}), queue.ErrConfig)
}
