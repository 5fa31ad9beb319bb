package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/queue"
)

func TestResetDropsAllMessages(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q, other := open(t, server, queue.Config{}), open(t, server, queue.Config{Campaign: "other"})
	worker := open(t, server, queue.Config{}) // another process, which does not know of the Reset
	ids := []string{"acked", "leased", "buried", "waiting"}
	for _, id := range ids {
		must(t, publish(t.Context(), q, "c", id, []byte("old")))
	}
	must(t, publish(t.Context(), other, "c", "acked", nil))
	must(t, lease(t, worker).Ack(t.Context()))
	held := lease(t, worker)
	must(t, lease(t, worker).Bury(t.Context(), queue.Dead{ID: "buried", Reason: "old"}))
	must(t, worker.PublishResult(t.Context(), "acked", 0, []byte("old")))

	must(t, q.Reset(t.Context()))
	wantDepth(t, q, 0, 0)
	wantNone(t, worker, 100*time.Millisecond)
	letters := deadLetters(t, q)
	if len(letters) != 0 {
		t.Fatalf("dead letters after Reset: %v", letters)
	}

	// Every stream accepts the same ids again at once.
	batch := make([]queue.Work, len(ids))
	for i, id := range ids {
		batch[i] = queue.Work{Class: "c", ID: id, Payload: []byte("new")}
	}
	must(t, q.PublishBatch(t.Context(), batch))
	mustBe(t, q.PublishBatch(t.Context(), batch), queue.ErrDuplicate)
	wantDepth(t, q, 4, 0)
	must(t, held.Ack(t.Context())) // a dropped item
	wantDepth(t, q, 4, 0)
	for _, id := range ids {
		l := lease(t, worker)
		if l.ID() != id || l.Attempt() != 1 || string(l.Payload()) != "new" {
			t.Fatalf("leased %s %q, attempt %d, want %s at attempt 1", l.ID(), l.Payload(), l.Attempt(), id)
		}
		if id == "buried" {
			must(t, l.Bury(t.Context(), queue.Dead{ID: id, Reason: "new"}))
			continue
		}
		must(t, worker.PublishResult(t.Context(), id, 0, []byte("new")))
		must(t, l.Ack(t.Context()))
	}
	for id, payload := range results(t, q, 3) {
		if payload != "new" {
			t.Errorf("result %s is %q, want the new payload", id, payload)
		}
	}
	letters = deadLetters(t, q)
	if len(letters) != 1 || letters[0].Reason != "new" {
		t.Fatalf("dead letters: %+v, want the new payload", letters)
	}
	wantDepth(t, other, 1, 0)
}

// TestResetAfterRestart resets like a coordinator after a crash: the server loads the old items from disk and must accept
// them again.
func TestResetAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	must(t, publish(t.Context(), open(t, server, queue.Config{}), "c", "1", []byte("old")))
	server.Stop()

	q := open(t, start(t, dir), queue.Config{})
	must(t, q.Reset(t.Context()))
	must(t, publish(t.Context(), q, "c", "1", []byte("new")))
	if l := lease(t, q); string(l.Payload()) != "new" || l.Attempt() != 1 {
		t.Fatalf("leased %q, attempt %d", l.Payload(), l.Attempt())
	}
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
		must(t, l.Bury(t.Context(), queue.Dead{ID: l.ID(), Reason: name}))
		letters := deadLetters(t, queues[i])
		if len(letters) != 1 || letters[0].Reason != name {
			t.Fatalf("campaign %q sees dead letters %+v", name, letters)
		}
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
