package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/queue"
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
	acked, held := lease(t, q), lease(t, q)
	must(t, acked.Ack(t.Context()))
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
	if got := results(t, look, 1); got["2"] != "late" {
		t.Fatalf("results %v after Drop", got)
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
	if last != 0 {
		t.Fatalf("last result %d, want nothing", last)
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
		must(t, l.Ack(t.Context()))
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
	mustBe(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1", Round: -1}}), queue.ErrConfig)
}

func TestRemovedCampaignBeginsAnew(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q, other := open(t, server, queue.Config{}), open(t, server, queue.Config{Campaign: "other"})
	worker := open(t, server, queue.Config{}) // another process, which does not know of the removal
	ids := []string{"acked", "leased", "waiting"}
	for _, id := range ids {
		must(t, publish(t.Context(), q, "c", id, []byte("old")))
	}
	must(t, publish(t.Context(), other, "c", "acked", nil))
	must(t, lease(t, worker).Ack(t.Context()))
	held := lease(t, worker)
	must(t, worker.PublishResult(t.Context(), "acked", 0, []byte("old")))

	must(t, q.Remove(t.Context()))
	q = open(t, server, queue.Config{})
	wantDepth(t, q, 0, 0)
	wantNone(t, worker, 100*time.Millisecond)

	// Every stream accepts the same ids again at once.
	batch := make([]queue.Work, len(ids))
	for i, id := range ids {
		batch[i] = queue.Work{Class: "c", ID: id, Payload: []byte("new")}
	}
	must(t, q.PublishBatch(t.Context(), batch))
	mustBe(t, q.PublishBatch(t.Context(), batch), queue.ErrDuplicate)
	wantDepth(t, q, 3, 0)
	must(t, held.Ack(t.Context())) // a dropped item
	wantDepth(t, q, 3, 0)
	for _, id := range ids {
		l := lease(t, worker)
		if l.ID() != id || l.Attempt() != 1 || string(l.Payload()) != "new" {
			t.Fatalf("leased %s %q, attempt %d, want %s at attempt 1", l.ID(), l.Payload(), l.Attempt(), id)
		}
		must(t, worker.PublishResult(t.Context(), id, 0, []byte("new")))
		must(t, l.Ack(t.Context()))
	}
	for id, payload := range results(t, q, 3) {
		if payload != "new" {
			t.Errorf("result %s is %q, want the new payload", id, payload)
		}
	}
	wantDepth(t, other, 1, 0)
}

func TestCampaignsAreIsolated(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	names := []string{"a", "a.b", "a b", "A", "a*", "größe/>", strings.Repeat("long", 16)}
	queues := make([]*queue.Queue, len(names))
	for i, name := range names {
		queues[i] = open(t, server, queue.Config{Campaign: name})
		must(t, publish(t.Context(), queues[i], "c", "same id", []byte(name)))
		must(t, queues[i].PublishResult(t.Context(), "same id", 0, []byte(name)))
	}
	for i, name := range names {
		l := lease(t, queues[i])
		if string(l.Payload()) != name {
			t.Fatalf("campaign %q leases an item of %q", name, l.Payload())
		}
		wantNone(t, queues[i], 20*time.Millisecond)
		must(t, l.Ack(t.Context()))
		if got := results(t, queues[i], 1); got["same id"] != name {
			t.Fatalf("campaign %q sees results %v", name, got)
		}
	}
}

// results reads the first n results of a campaign.
func results(t *testing.T, q *queue.Queue, n int) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := map[string]string{}
	count := 0
	for r, err := range q.Results(ctx, 0) {
		must(t, err)
		got[r.ID] = string(r.Payload)
		if count++; count == n {
			return got
		}
	}
	t.Fatal(fmt.Errorf("%d results within %v, want %d", count, patience, n))
	return nil
}

// Two processes that delete and create a consumer at the same time leave a consumer without files. Open creates it again.
func TestOpenReplacesConsumerWithoutFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	q := open(t, server, queue.Config{})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "a", ID: "one"}}))
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "DDIFF_WORK", "obs", "*camp"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("the consumer has the folders %v, want one", files)
	}
	must(t, os.RemoveAll(files[0]))
	q = open(t, server, queue.Config{})
	leases, err := q.Lease(t.Context(), 1, 5*time.Second)
	must(t, err)
	if len(leases) != 1 {
		t.Errorf("%d leases, want 1", len(leases))
	}
}

func TestPublishLeaseAck(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "sr 4x/256", "item-1", []byte("payload")))
	wantDepth(t, q, 1, 0)
	l := lease(t, q)
	if l.ID() != "item-1" || string(l.Payload()) != "payload" || l.Attempt() != 1 || l.Last() || l.Exhausted() {
		t.Fatalf("leased %s %q, attempt %d, last %t", l.ID(), l.Payload(), l.Attempt(), l.Last())
	}
	if want := "sr=204x=2F256"; l.Class() != want {
		t.Errorf("class is %s, want %s", l.Class(), want)
	}
	wantDepth(t, q, 0, 1)
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
	mustBe(t, l.Ack(t.Context()), queue.ErrSettled)
	mustBe(t, l.Retry(t.Context(), 0), queue.ErrSettled)
	must(t, queue.Extend(t.Context(), l)) // settled: nothing is sent
}

func TestPublishRefusesDuplicates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	q := open(t, server, queue.Config{})
	must(t, publish(t.Context(), q, "c", "twice", []byte("first")))
	mustBe(t, publish(t.Context(), q, "c", "twice", []byte("second")), queue.ErrDuplicate)
	mustBe(t, publish(t.Context(), q, "other class", "twice", []byte("second")), queue.ErrDuplicate)
	server.Stop()

	q = open(t, start(t, dir), queue.Config{})
	mustBe(t, publish(t.Context(), q, "c", "twice", []byte("second")), queue.ErrDuplicate)
	l := lease(t, q)
	if string(l.Payload()) != "first" {
		t.Fatalf("payload %q, want the first", l.Payload())
	}
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
}

func TestTraceContextTravels(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	q := newQueue(t, queue.Config{Tracer: tracer})
	ctx, span := tracer.Start(t.Context(), "shard")
	must(t, publish(ctx, q, "c", "1", nil))
	must(t, q.PublishBatch(ctx, []queue.Work{{Class: "c", ID: "2"}}))
	must(t, publish(t.Context(), q, "c", "of another trace", nil))
	span.End()

	publishers := map[trace.SpanID]bool{}
	for _, ended := range recorder.Ended() {
		if ended.Name() == "publish ddiff.work" && ended.Parent().SpanID() == span.SpanContext().SpanID() {
			publishers[ended.SpanContext().SpanID()] = true
		}
	}
	if len(publishers) != 2 {
		t.Fatalf("%d publish spans below the caller's, want 2", len(publishers))
	}
	for range 2 {
		l := lease(t, q)
		got := trace.SpanContextFromContext(l.Context(t.Context()))
		if got.TraceID() != span.SpanContext().TraceID() || !publishers[got.SpanID()] || !got.IsRemote() || !got.IsSampled() {
			t.Fatalf("item %s carries %+v, want trace %v", l.ID(), got, span.SpanContext().TraceID())
		}
	}
	l := lease(t, q)
	if got := trace.SpanContextFromContext(l.Context(t.Context())); got.TraceID() == span.SpanContext().TraceID() || !got.IsValid() {
		t.Fatalf("item %s carries %+v, want its own trace", l.ID(), got)
	}
}

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
	must(t, second.Ack(t.Context()))
	wantSize(t, q, 2)
	js := streamsOf(t, nc)
	must(t, js.DeleteStream(t.Context(), "DDIFF_WORK"))
	wantSize(t, q, 0)
	nc.Close()
	if _, err := q.Size(t.Context()); !errors.Is(err, queue.ErrClosed) || !strings.Contains(err.Error(), "size of campaign camp") {
		t.Errorf("a closed connection: %v", err)
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
	data, revision, err := board.Get(t.Context(), queue.KeyLeader)
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
		if now.ID != before.ID || change.Revision > revision+2 {
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
