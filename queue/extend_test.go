package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/queue"
	"ddiff/queue/queuetest"
)

// 64 leases of a worker at a round trip of 100 ms are extended in one round trip: all of them survive several lease times,
// each of which is shorter than 64 round trips.
func TestExtendTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	const batch, ackWait = 64, time.Second
	s := serve(t, jetStream(t))
	q := openOn(t, dial(t, s), queue.Config{Campaign: "slow", AckWait: ackWait, MaxAttempts: 1000})
	work := make([]queue.Work, batch)
	for i := range work {
		work[i] = queue.Work{Class: "c", ID: fmt.Sprint(i)}
	}
	must(t, q.PublishBatch(t.Context(), work))
	slow, err := nats.Connect(s.ClientURL(), nats.SetCustomDialer(queuetest.Dialer{RoundTrip: 100 * time.Millisecond}))
	must(t, err)
	t.Cleanup(slow.Close)
	far := attach(t, slow, queue.Config{Campaign: "slow"})
	wantRenewed(t, q, ackWait, 3*ackWait/2, ackWait/4, func() (leases []*queue.Lease) {
		for begin := time.Now(); len(leases) < batch; {
			more, err := far.Lease(t.Context(), batch-len(leases), patience)
			must(t, err)
			if leases = append(leases, more...); time.Since(begin) > patience {
				t.Fatalf("%d leases, want %d", len(leases), batch)
			}
		}
		return leases
	})
}
