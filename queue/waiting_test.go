package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/queue"
)

// More workers than the server lets wait ask for items of an empty campaign: the others wait as well, without an error, and
// get items later.
func TestLeaseAboveWaitingLimit(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	q := openOn(t, dial(t, s), queue.Config{Campaign: "crowded"})
	crowd, err := nats.Connect(s.ClientURL())
	must(t, err)
	t.Cleanup(crowd.Close)
	inbox := crowd.NewRespInbox()
	answers, err := crowd.SubscribeSync(inbox)
	must(t, err)
	for range 4096 {
		must(t, crowd.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-crowded", inbox, []byte(`{"batch":1,"expires":3600000000000}`)))
	}
	must(t, crowd.Flush())
	const wait = 200 * time.Millisecond
	begin := time.Now()
	leases, err := q.Lease(t.Context(), 1, wait)
	if took := time.Since(begin); err != nil || len(leases) != 0 || took < wait {
		t.Fatalf("%d leases after %v: %v", len(leases), took, err)
	}
	must(t, answers.Unsubscribe()) // the server drops requests that nobody waits for
	must(t, crowd.Flush())
	must(t, publish(t.Context(), q, "c", "1", nil))
	for deadline := time.Now().Add(patience); len(leases) == 0; {
		leases, err = q.Lease(t.Context(), 1, wait)
		must(t, err)
		if time.Now().After(deadline) {
			t.Fatal("timeout: no item")
		}
	}
}
