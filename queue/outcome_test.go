package queue_test

import (
	"testing"

	"ddiff/queue"
)

// TestRepeatedOutcomeIsNotNew: an outcome that another worker, or the same one, has published is not new; that of another
// item or round is.
func TestRepeatedOutcomeIsNotNew(t *testing.T) {
	t.Parallel()
	q := open(t, start(t, t.TempDir()), queue.Config{AckWait: shortWait, MaxAttempts: 3})
	must(t, publish(t.Context(), q, "class", "1", nil))
	first := lease(t, q)
	outcome := func(l *queue.Lease, want bool) {
		t.Helper()
		isNew, err := l.PublishOutcome(t.Context(), []byte("done"))
		must(t, err)
		if isNew != want {
			t.Errorf("outcome of item %s, attempt %d: new is %v, want %v", l.ID(), l.Attempt(), isNew, want)
		}
	}
	outcome(first, true)
	outcome(first, false)
	again := lease(t, q) // the first lease has expired
	if again.Attempt() != 2 {
		t.Fatalf("attempt %d", again.Attempt())
	}
	outcome(again, false)
	must(t, again.Ack(t.Context()))
	must(t, publish(t.Context(), q, "class", "2", nil))
	outcome(lease(t, q), true)
}
