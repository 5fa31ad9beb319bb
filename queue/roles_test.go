package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/queue"
)

// TestRolesAllowCampaign runs a campaign with the documented permissions.
func TestRolesAllowCampaign(t *testing.T) {
	t.Parallel()
	s := serveRoles(t)
	coordinator, worker, command := connect(t, s, "coordinator"), connect(t, s, "worker"), connect(t, s, "command")
	_, err := queue.OpenBoard(t.Context(), worker)
	mustBe(t, err, queue.ErrNotReady)
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{MaxResults: 100}))

	// The command line submits.
	clerk := openBoard(t, command)
	revision, err := clerk.Create(t.Context(), "campaign.1", []byte("submitted"))
	must(t, err)
	_, err = clerk.Update(t.Context(), "campaign.1", []byte("changed"), revision)
	must(t, err)

	// The coordinator leads and opens the campaign.
	election, err := queue.NewElection(t.Context(), coordinator, queue.ElectionConfig{Name: "a", TTL: time.Second})
	must(t, err)
	must(t, election.Run(t.Context(), func(context.Context) error { return nil }))
	board := openBoard(t, coordinator)
	must(t, board.Put(t.Context(), "status.1", []byte("running")))
	q := openOn(t, coordinator, queue.Config{Campaign: "1", AckWait: shortWait, MaxAttempts: 1})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}, {Class: "c", ID: "3"}, {Class: "c", ID: "4"}}))
	must(t, q.Pause(t.Context()))
	must(t, q.Resume(t.Context()))
	defer sweep(t, coordinator, time.Millisecond, func(string, queue.DeadLetter) ([]byte, error) { return []byte("dead"), nil })()

	// The worker settles items.
	mine := openBoard(t, worker)
	for change, err := range mine.Watch(t.Context(), "campaign.") {
		must(t, err)
		if change.Ready {
			break
		}
		if string(change.Data) != "changed" {
			t.Fatalf("record %s is %q", change.Key, change.Data)
		}
	}
	must(t, mine.Put(t.Context(), "worker.w-1", []byte("beat")))
	must(t, mine.Delete(t.Context(), "worker.w-1"))
	w := attach(t, worker, queue.Config{Campaign: "1"})
	l := lease(t, w)
	must(t, queue.Extend(t.Context(), l))
	must(t, l.PublishResult(t.Context(), []byte("done")))
	must(t, l.Ack(t.Context()))
	must(t, lease(t, w).Bury(t.Context(), queue.Dead{ID: "2", Reason: "bad"}))
	must(t, lease(t, w).Retry(t.Context(), 0))
	must(t, lease(t, w).Release(t.Context()))
	for len(deadLetters(t, q)) < 3 { // the other two exhaust their attempts
		_, err := w.Lease(t.Context(), 1, shortWait)
		must(t, err)
	}

	// Every role reads.
	if got := results(t, q, 3); got["1"] != "done" || got["3"] != "dead" {
		t.Fatalf("results %v", got)
	}
	look, err := queue.Inspect(command, queue.Config{Campaign: "1"})
	must(t, err)
	letters := deadLetters(t, look)
	must(t, q.RemoveDead(t.Context(), letters[0].Seq))
	keys, err := clerk.Keys(t.Context(), "")
	must(t, err)
	if len(keys) != 2 {
		t.Fatalf("keys %v, want those of the campaign and its status", keys)
	}
	must(t, q.Remove(t.Context()))
	wantExists(t, look, false)
}

// TestRolesDenyOtherRequests tries requests that a role must not make: calls of this package, and requests of the coordinator.
// TestAttackAllSubjects has the others of workers and commands, TestAttackSubscriptions the subscriptions.
func TestRolesDenyOtherRequests(t *testing.T) {
	t.Parallel()
	s := serveRoles(t)
	coordinator := connect(t, s, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	board := openBoard(t, coordinator)
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "cluster"} {
		must(t, board.Put(t.Context(), key, []byte("as it was")))
	}
	q := openOn(t, coordinator, queue.Config{Campaign: "1"})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, q.PublishResult(t.Context(), "0", 0, nil))

	write := func(key string) func(context.Context, *nats.Conn) error {
		return func(ctx context.Context, nc *nats.Conn) error {
			b, err := queue.OpenBoard(ctx, nc)
			if err != nil {
				return err
			}
			return b.Put(ctx, key, []byte("changed"))
		}
	}
	request := func(subject string) func(context.Context, *nats.Conn) error {
		return func(ctx context.Context, nc *nats.Conn) error {
			_, err := nc.RequestWithContext(ctx, "$JS.API."+subject, nil)
			return err
		}
	}
	tries := []struct {
		role, what string
		try        func(context.Context, *nats.Conn) error
	}{
		{"worker", "purge the results", request("STREAM.PURGE.DDIFF_RESULT")},
		{"worker", "change a campaign", write("campaign.1")},
		{"worker", "set up", func(ctx context.Context, nc *nats.Conn) error {
			return queue.Setup(ctx, nc, queue.SetupConfig{MaxResults: 1})
		}},
		{"worker", "lead", func(ctx context.Context, nc *nats.Conn) error {
			e, err := queue.NewElection(ctx, nc, queue.ElectionConfig{TTL: time.Second})
			if err != nil {
				return err
			}
			return e.Run(ctx, func(context.Context) error { return nil })
		}},
		{"command", "pose as a worker", write("worker.1")},
		{"command", "lease an item", func(ctx context.Context, nc *nats.Conn) error {
			q, err := queue.Attach(ctx, nc, queue.Config{Campaign: "1"})
			if err != nil {
				return err
			}
			_, err = q.Lease(ctx, 1, time.Second)
			return err
		}},
		{"command", "publish an outcome", func(ctx context.Context, nc *nats.Conn) error {
			q, err := queue.Inspect(nc, queue.Config{Campaign: "1"})
			if err != nil {
				return err
			}
			return q.PublishResult(ctx, "1", 0, nil)
		}},
		{"coordinator", "delete the work", request("STREAM.DELETE.DDIFF_WORK")},
		{"coordinator", "make another stream", request("STREAM.CREATE.OTHER")},
	}
	var all sync.WaitGroup // more than the limit of parallel tests: the cases only wait
	for _, c := range tries {
		nc := connect(t, s, c.role)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			defer cancel()
			err := c.try(ctx, nc)
			// A call of the client may only time out: the server reports the violation asynchronously.
			if !errors.Is(err, queue.ErrAccess) && !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
				t.Errorf("%s tries to %s: error %v, server error %v; want a permission violation", c.role, c.what, err, nc.LastError())
			}
		})
	}
	all.Wait()
	wantDepth(t, q, 2, 0)
	if last, err := q.LastResult(t.Context()); err != nil || last == 0 {
		t.Fatalf("the last result is number %d, %v", last, err)
	}
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "cluster"} {
		if data, _, err := board.Get(t.Context(), key); err != nil || string(data) != "as it was" {
			t.Errorf("record %s is %q, %v", key, data, err)
		}
	}
}
