package gpuworker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/internal/queue/queuetest"
)

// A worker with batches of 64 and a round trip of 100 ms to the queue solves a batch for twice the time of a lease, while
// another worker waits for items: no item is solved twice.
func TestSlowNetworkKeepsLeases(t *testing.T) {
	t.Parallel()
	const batch, roundTrip = 64, 100 * time.Millisecond
	withLeases(t, time.Second, func(ackWait time.Duration) error {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
		must(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(patience) {
			t.Fatal("timeout: the server is not ready")
		}
		connect := func(options ...nats.Option) *queue.Queue {
			nc, err := nats.Connect(s.ClientURL(), options...)
			must(t, err)
			t.Cleanup(nc.Close)
			q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "test", AckWait: ackWait, MaxAttempts: 100})
			must(t, err)
			return q
		}
		near, far := connect(), connect(nats.SetCustomDialer(queuetest.Dialer{RoundTrip: roundTrip}))
		publish(t, near, items(t, batch)...)
		store := newStore(t)
		worker := func(name string, q *queue.Queue) *running {
			cfg := config(t, q, store)
			cfg.Name, cfg.AckWait, cfg.Simulate = name, ackWait, &gpuworker.Simulation{Mean: 2 * ackWait / batch}
			batchOf(&cfg, batch)
			return start(t, cfg)
		}
		pending := func(n uint64) func() bool {
			return func() bool {
				waiting, _, err := near.Depth(t.Context())
				must(t, err)
				return waiting == n
			}
		}
		waitUntil(t, "the items are published", pending(batch)) // the consumer learns of them later than the stream
		first := worker("far", far)
		waitUntil(t, "the items are leased", pending(0)) // on a busy machine in several batches, of which the first may be settled by then
		second := worker("near", near)
		all := results(t, near, batch)
		first.stop(t)
		second.stop(t)
		for name, r := range all {
			if r.Worker != "far" || r.Attempt != 1 {
				return fmt.Errorf("item %s was solved by %s at attempt %d", name, r.Worker, r.Attempt)
			}
		}
		wantEmpty(t, near)
		return nil
	})
}
