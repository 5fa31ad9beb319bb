package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/queue"
)

// hint publishes hints until nc receives one.
func hint(t *testing.T, nc *nats.Conn, publisher *queue.Hints) error {
	t.Helper()
	const campaign = "c.1" // not a token
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		for ctx.Err() == nil && publisher.Publish(campaign) == nil { // a hint before the subscription is lost
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}()
	defer func() { cancel(); <-sending }()
	for got, err := range queue.NewHints(nc).Watch(ctx) {
		if err == nil && got != campaign {
			err = fmt.Errorf("a hint of %q", got)
		}
		return err
	}
	return ctx.Err()
}

func TestHints(t *testing.T) {
	t.Parallel()
	nc := dial(t, serve(t, jetStream(t)))
	must(t, hint(t, nc, queue.NewHints(nc)))
	mustBe(t, queue.NewHints(nc).Publish(""), queue.ErrBadName)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for campaign, err := range queue.NewHints(nc).Watch(ctx) {
		t.Errorf("hint %q and error %v after the end of the context", campaign, err)
	}
	nc.Close()
	mustBe(t, queue.NewHints(nc).Publish("c"), queue.ErrClosed)
	for _, err := range queue.NewHints(nc).Watch(t.Context()) {
		mustBe(t, err, queue.ErrClosed)
	}
}

// With the accounts of an earlier version, which do not permit hints, workers lease items as before.
func TestHintsAreOptional(t *testing.T) {
	t.Parallel()
	s := serveEdited(t, `, "ddiff.hint.*" ]`, " ]", `    "ddiff.hint.*"`+"\n", "")
	coordinator, worker := connect(t, s, "coordinator"), connect(t, s, "worker")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	q := openOn(t, coordinator, queue.Config{Campaign: "1"})
	w := attach(t, worker, queue.Config{Campaign: "1"})
	// The server refuses the subscription during a lease request.
	ctx, cancel := context.WithTimeout(t.Context(), shortWait)
	defer cancel()
	watching := make(chan int)
	go func() {
		n := 0
		for _, err := range queue.NewHints(worker).Watch(ctx) {
			if err == nil {
				n++
			}
		}
		watching <- n
	}()
	wantNone(t, w, shortWait)
	if n := <-watching; n > 0 || !errors.Is(worker.LastError(), nats.ErrPermissionViolation) {
		t.Fatalf("%d hints, last error %v; want a refusal", n, worker.LastError())
	}
	must(t, queue.NewHints(worker).Publish("1"))
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}}))
	must(t, lease(t, w).Ack(t.Context()))
}
