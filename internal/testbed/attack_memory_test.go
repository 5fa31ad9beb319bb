package testbed

import (
	"fmt"
	"testing"
	"time"

	"ddiff/internal/queue"
)

// TestAttackMemoryOfItems publishes half a million open items of ten campaigns and measures the resident memory of the NATS server for
// each, while the server remembers their ids and after that. docs/cluster.md has the figure.
func TestAttackMemoryOfItems(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Directory: true})
	coordinator(t, c) // sets the streams up
	nc, err := c.NATS.connect(t.Context(), RoleCoordinator)
	must(t, err)
	defer nc.Close()
	server := c.NATS.Servers[0].PID()
	before, err := residentMemory(server)
	must(t, err)
	const campaigns, batches, batch = 10, 50, 1000
	payload := make([]byte, 700) // about that of an item
	for i := range campaigns {
		q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: fmt.Sprint("memory-", i)})
		must(t, err)
		for b := range batches {
			var work []queue.Work
			for k := range batch {
				work = append(work, queue.Work{Class: "a", ID: fmt.Sprintf("%064d", b*batch+k), Payload: payload})
			}
			must(t, q.PublishBatch(t.Context(), work))
		}
	}
	const items = campaigns * batches * batch
	each := func() float64 {
		t.Helper()
		now, err := residentMemory(server)
		must(t, err)
		return float64(now-before) / items
	}
	during := each()
	time.Sleep(150 * time.Second) // the server remembers ids for two minutes
	after := each()
	t.Logf("items=%d bytes_each_during=%.0f bytes_each_after=%.0f", items, during, after)
	if after > 1000 {
		t.Errorf("an open item takes %.0f bytes of the NATS server", after)
	}
}
