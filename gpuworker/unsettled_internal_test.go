package gpuworker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/internal/queue"
	"ddiff/restore/item"
)

// TestAttackRefusedOutcomes: a worker whose outcomes NATS does not take, three in a row, is suspended in its heartbeat, with the reason, until one
// is taken.
func TestAttackRefusedOutcomes(t *testing.T) {
	t.Parallel()
	w, dir := workerOf(t, func(c *Config) { c.TolerateQueueErrors = true })
	// settle ends items, with lost after the server has stopped.
	settle := func(lost bool, ids ...string) {
		t.Helper()
		server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
		must(t, err)
		t.Cleanup(server.Stop)
		nc, err := server.Connect()
		must(t, err)
		q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "a", AckWait: time.Minute, Timeout: 100 * time.Millisecond})
		must(t, err)
		for _, id := range ids {
			must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: id, Payload: []byte("{}")}}))
		}
		var leases []*queue.Lease
		for range ids {
			leases = append(leases, leased(t, q))
		}
		if lost {
			server.Stop()
		}
		for _, l := range leases {
			if got := w.Beat().Suspended; lost && got != "" {
				t.Errorf("before the third refusal: %q", got)
			}
			tk := &task{lease: l, assigned: newAssigned(Assignment{Campaign: "a", Store: dir}, 1, nil, 0), ctx: t.Context(), starts: make([]attemptStart, 1)}
			tk.Item = item.Item{ID: l.ID(), Campaign: "a", Task: "hdr"}
			err := w.settle(t.Context(), tk, outcome{failed, "", errors.New("other")}, &item.Result{Item: tk.Item, Outcome: item.OutcomeFailed})
			if (err != nil) != lost {
				t.Errorf("settle: %v", err)
			}
		}
	}
	settle(true, "a", "b", "c")
	if got := w.Beat().Suspended; !strings.Contains(got, "NATS takes no outcome or acknowledgement, 3 in a row: ") {
		t.Errorf("after three refusals: %q", got)
	}
	settle(false, "d")
	if got := w.Beat().Suspended; got != "" {
		t.Errorf("after an outcome that was taken: %q", got)
	}
}
