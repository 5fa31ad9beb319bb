package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"ddiff/queue"
)

// wantSize checks the number of items of a campaign.
func wantSize(t *testing.T, q *queue.Queue, want uint64) {
	t.Helper()
	got, err := q.Size(t.Context())
	must(t, err)
	if got != want {
		t.Errorf("%d items, want %d", got, want)
	}
}

// TestSize: the size has the waiting and the leased items of all classes, of one campaign.
func TestSize(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	nc := dial(t, s)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	q := openOn(t, nc, queue.Config{Campaign: "camp"})
	other := openOn(t, nc, queue.Config{Campaign: "other"})
	wantSize(t, q, 0)
	for i := range 4 {
		must(t, publish(t.Context(), q, fmt.Sprint("class", i%2), fmt.Sprint(i), nil))
	}
	must(t, publish(t.Context(), other, "class0", "0", nil))
	wantSize(t, q, 4)
	wantSize(t, other, 1)
	first, second := lease(t, q), lease(t, q)
	wantSize(t, q, 4)
	must(t, first.Ack(t.Context()))
	must(t, second.Bury(t.Context(), queue.Dead{ID: second.ID(), Reason: "bad"}))
	wantSize(t, q, 2)
	js := streamsOf(t, nc)
	must(t, js.DeleteStream(t.Context(), "DDIFF_WORK"))
	wantSize(t, q, 0)
	nc.Close()
	if _, err := q.Size(t.Context()); !errors.Is(err, queue.ErrClosed) || !strings.Contains(err.Error(), "size of campaign camp") {
		t.Errorf("a closed connection: %v", err)
	}
}

// TestDepths: one listing has the depth of every queue.
func TestDepths(t *testing.T) {
	t.Parallel()
	nc := dial(t, serve(t, jetStream(t)))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	q := openOn(t, nc, queue.Config{Campaign: "camp.1"})
	openOn(t, nc, queue.Config{Campaign: "empty"})
	for i := range 3 {
		must(t, publish(t.Context(), q, "class", fmt.Sprint(i), nil))
	}
	lease(t, q)
	wantDepth(t, q, 2, 1)
	all, err := queue.Depths(t.Context(), nc)
	want := map[string]queue.Depth{"camp.1": {Pending: 2, InFlight: 1}, "empty": {}}
	if err != nil || !maps.Equal(all, want) {
		t.Errorf("%v, %v; want %v", all, err, want)
	}
	must(t, streamsOf(t, nc).DeleteStream(t.Context(), "DDIFF_WORK"))
	if all, err := queue.Depths(t.Context(), nc); err != nil || len(all) > 0 {
		t.Errorf("without a stream: %v, %v", all, err)
	}
}

// TestResultStream: the stream has one identity for all campaigns, a number that grows with each result, and another identity after it was
// created again.
func TestResultStream(t *testing.T) {
	t.Parallel()
	nc := dial(t, serve(t, jetStream(t)))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	q := openOn(t, nc, queue.Config{Campaign: "camp"})
	other := openOn(t, nc, queue.Config{Campaign: "other"})
	id, last, err := q.ResultStream(t.Context())
	must(t, err)
	must(t, other.PublishResult(t.Context(), "1", 0, nil))
	must(t, q.PublishResult(t.Context(), "1", 0, nil))
	again, after, err := q.ResultStream(t.Context())
	must(t, err)
	if again != id || after != last+2 {
		t.Errorf("two results after %d/%d: %d/%d", id, last, again, after)
	}
	js := streamsOf(t, nc)
	must(t, js.DeleteStream(t.Context(), "DDIFF_RESULT"))
	_, _, err = q.ResultStream(t.Context())
	mustBe(t, err, queue.ErrNotReady)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	if renewed, _, err := q.ResultStream(t.Context()); err != nil || renewed == id {
		t.Errorf("a new stream: identity %d, before %d, %v", renewed, id, err)
	}
}

// TestPublishNotice: an event beside the outcomes can follow the end of the lease. Each call publishes one.
func TestPublishNotice(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: "1", Round: 3, Payload: nil}}))
	l := lease(t, q)
	must(t, l.PublishResult(t.Context(), []byte("outcome")))
	must(t, l.Ack(t.Context()))
	for range 2 {
		must(t, l.PublishNotice(t.Context(), "log", []byte("lines")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for r, err := range q.Results(ctx, 0) {
		must(t, err)
		if got = append(got, fmt.Sprintf("%s %d %s", r.ID, r.Round, r.Payload)); len(got) == 3 {
			break
		}
	}
	if want := "[1 3 outcome log 3 lines log 3 lines]"; fmt.Sprint(got) != want {
		t.Errorf("events %v, want %s", got, want)
	}
	err := l.PublishNotice(t.Context(), "bad\nid", nil)
	mustBe(t, err, queue.ErrBadName)
}

// TestLargeBatch: a batch that is larger than the window of messages in flight is stored completely, but for the items that are refused:
// two that are there, at both ends of the batch, one of a bad class, one without an id, and one that is too large.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	const n, bad = 2000, 1990
	batch := make([]queue.Work, n)
	for i := range batch {
		batch[i] = queue.Work{Class: "class", ID: fmt.Sprint(i)}
	}
	must(t, q.PublishBatch(t.Context(), []queue.Work{batch[0], batch[n-1]}))
	batch[7].Class = strings.Repeat("c", queue.MaxNameBytes+1)
	batch[8].Payload = make([]byte, queue.MaxPayloadBytes)
	batch[9].ID = ""
	batch[bad].Payload = make([]byte, queue.MaxPayloadBytes+1)
	var refused *queue.BatchError
	if err := q.PublishBatch(t.Context(), batch); !errors.As(err, &refused) {
		t.Fatalf("error %v", err)
	}
	want := []queue.Refused{
		{ID: "0", Err: queue.ErrDuplicate}, {ID: "7", Err: queue.ErrBadName}, {ID: "", Err: queue.ErrBadName}, {ID: fmt.Sprint(bad), Err: queue.ErrTooLarge},
		{ID: fmt.Sprint(n - 1), Err: queue.ErrDuplicate},
	}
	if len(refused.Refused) != len(want) || refused.Total != n {
		t.Fatalf("%d of %d items are refused: %v", len(refused.Refused), refused.Total, refused)
	}
	for i, r := range refused.Refused {
		if r.ID != want[i].ID || !errors.Is(r.Err, want[i].Err) {
			t.Errorf("item %s is refused: %v, want item %s: %v", r.ID, r.Err, want[i].ID, want[i].Err)
		}
	}
	if text := fmt.Sprintf("publish batch: 5 of %d items refused, the first is 0: already published", n); refused.Error() != text {
		t.Errorf("error %q, want %q", refused, text)
	}
	mustBe(t, refused, queue.ErrTooLarge)
	wantSize(t, q, n-3)

	must(t, q.PublishBatch(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.PublishBatch(ctx, []queue.Work{{Class: "c", ID: "late"}})
	mustBe(t, err, context.Canceled)
	if !errors.As(err, &refused) || len(refused.Refused) != 1 || refused.Refused[0].ID != "late" {
		t.Fatalf("error is %v, want one refused item", err)
	}
}

// TestElectionAfterLostAnswer: a leader whose renewal took effect without an answer finds its own record and still leads. It stops when the record is another's.
func TestElectionAfterLostAnswer(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	begin := time.Now()
	a := run(t, s, "a", func() time.Time { return begin }) // never late for a renewal
	led := a.leader(t, patience)
	board := openBoard(t, dial(t, s))
	data, _, err := board.Get(t.Context(), queue.KeyLeader)
	must(t, err)
	must(t, board.Put(t.Context(), queue.KeyLeader, data)) // another revision, which the leader does not know
	var before, now queue.Leader
	must(t, json.Unmarshal(data, &before))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for change, err := range board.Watch(ctx, queue.KeyLeader) {
		must(t, err)
		if change.Ready {
			continue
		}
		must(t, json.Unmarshal(change.Data, &now))
		if now.ID != before.ID || now.Renewals > before.Renewals+1 {
			break
		}
	}
	if ctx.Err() != nil || now.ID != before.ID || led.Err() != nil {
		t.Errorf("the leader %+v is followed by %+v: %v", before, now, led.Err())
	}
	foreign, err := json.Marshal(queue.Leader{Name: "b", ID: "another"})
	must(t, err)
	must(t, board.Put(t.Context(), queue.KeyLeader, foreign))
	select {
	case <-led.Done():
	case <-ctx.Done():
		t.Error("the leader does not stop for another one's record")
	}
	a.stop()
	must(t, a.end(t))
}
