package queue_test

import (
	"testing"
	"time"

	"ddiff/internal/queue"
)

// TestAttackAges: the ages of records and results are those by the clock of the server, whatever time their writers state.
func TestAttackAges(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	nc := join(t, server)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	b := openBoard(t, nc)
	begin := time.Now()
	must(t, b.Put(t.Context(), "worker.a", []byte(`{"at":"1999-01-01T00:00:00Z"}`)))
	q := openOn(t, nc, queue.Config{Campaign: "ages"})
	must(t, q.PublishResult(t.Context(), "item", 0, []byte("{}")))
	written := time.Now()
	time.Sleep(300 * time.Millisecond) // an age needs time
	check := func(what string, since time.Time) {
		t.Helper()
		const error = 100 * time.Millisecond // of a server and a client that share a busy machine
		if since.Before(begin.Add(-error)) || since.After(written.Add(error)) {
			t.Errorf("%s: written %v after the begin, %v before the end", what, since.Sub(begin), written.Sub(since))
		}
	}
	for c, err := range b.Watch(t.Context(), "worker.") {
		must(t, err)
		check("record", c.Since)
		break
	}
	for r, err := range q.Results(t.Context(), 0) {
		must(t, err)
		check("result", time.Now().Add(-r.Age))
		break
	}
}
