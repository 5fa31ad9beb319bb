package queue_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"ddiff/queue"
)

// One or more messages are one event, those of a stream's subject too; none of another subject is one.
func TestNotified(t *testing.T) {
	t.Parallel()
	nc := join(t, start(t, t.TempDir()))
	js, err := jetstream.New(nc)
	must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"bucket.>"}})
	must(t, err)
	events, stop, err := queue.Notified(nc, "bucket.photos")
	must(t, err)
	_, err = js.Publish(t.Context(), "bucket.other", []byte("{}"))
	must(t, err)
	must(t, nc.Flush())
	select {
	case <-events:
		t.Error("an event of another subject")
	default:
	}
	for range 3 {
		_, err = js.Publish(t.Context(), "bucket.photos", []byte(`{"EventName": "s3:ObjectCreated:Put"}`))
		must(t, err)
	}
	<-events
	stop()
	if _, _, err := queue.Notified(nc, "two words"); err == nil {
		t.Error("a subject with a space is accepted")
	}
	if _, _, err := queue.Notified(connect(t, serveRoles(t), "command"), "bucket.photos"); !errors.Is(err, queue.ErrAccess) {
		t.Errorf("a subject without the permission: %v", err)
	}
}
