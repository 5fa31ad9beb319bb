package gpuworker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// idle opens n campaigns without items.
func (c *cluster) idle(n int) {
	c.t.Helper()
	for i := range n {
		id := fmt.Sprintf("idle-%04d", i)
		c.open(id, queue.Config{})
		c.submit(id)
	}
}

// requests counts the messages that a fleet on its own connection sends.
func (c *cluster) requests() (f *fleet.Fleet, sent func() int) {
	c.t.Helper()
	nc := c.connect()
	f = c.fleet(func(cfg *fleet.Config) {
		cfg.Attach = func(ctx context.Context, campaign string) (*queue.Queue, error) {
			return queue.Attach(ctx, nc, queue.Config{Campaign: campaign})
		}
	})
	return f, func() int { return int(nc.Stats().OutMsgs) }
}

// leaseFrom calls Next until it leases items of a campaign, acknowledges them, and returns the number of calls.
func leaseFrom(t *testing.T, f *fleet.Fleet, campaign string) int {
	t.Helper()
	for calls, begin := 1, time.Now(); time.Since(begin) < patience; calls++ {
		a, leases, err := f.Next(t.Context(), time.Second)
		must(t, err)
		for _, l := range leases {
			must(t, l.Ack(t.Context()))
		}
		if len(leases) > 0 && a.Campaign == campaign {
			return calls
		}
	}
	t.Fatalf("timeout: no item of %s is leased", campaign)
	return 0
}

// settleDown calls Next until the fleet has found n campaigns empty.
func settleDown(t *testing.T, f *fleet.Fleet, sent func() int, n int) {
	t.Helper()
	begin := time.Now()
	for known := begin; time.Since(known) < 1500*time.Millisecond; {
		_, leases, err := f.Next(t.Context(), time.Second)
		must(t, err)
		if len(leases) > 0 {
			t.Fatal("an idle campaign has an item")
		}
		if sent() < 2*n { // a campaign costs one request for its queue, and one for a lease
			known = time.Now()
		}
		if time.Since(begin) > patience {
			t.Fatal("timeout: the fleet does not know all campaigns")
		}
	}
}

// A change of a campaign's record ends the memory that the campaign is empty, and a new campaign is leased at once.
func TestRecordWakesIdleWorker(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.idle(60)
	f, sent := c.requests()
	settleDown(t, f, sent, 60)
	for _, id := range []string{"idle-0007", "idle-0041", "new-0", "new-1"} {
		c.fill(id, 1)
		c.submit(id)
		begin := time.Now()
		// The record may arrive during the first calls, which wait in other campaigns.
		if calls := leaseFrom(t, f, id); calls > 6 {
			t.Errorf("the item of %s is leased by call %d of Next, after %v", id, calls, time.Since(begin))
		}
	}
}

// A campaign of a high class that gets work without a change of its record is found while a low class has work.
func TestEmptyCampaignIsCheckedWhileLowerPriorityHasWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	high := c.open("high", queue.Config{})
	c.submit("high", priority(record.PriorityHigh))
	f, sent := c.requests()
	settleDown(t, f, sent, 1)
	c.fill("low", 50)
	c.submit("low")
	leaseFrom(t, f, "low")
	publish(t, high, item.Item{ID: "high-0"})
	for calls := 0; calls < 1000; calls++ {
		a, leases, err := f.Next(t.Context(), time.Second)
		must(t, err)
		for _, l := range leases {
			if a.Campaign == "high" {
				must(t, l.Ack(t.Context()))
				return
			}
			must(t, l.Retry(t.Context(), 0)) // the low class always has work
		}
	}
	t.Error("the item of the high class is not leased")
}

// An item that is retried with a delay, or whose lease expires, is found although no record changes.
func TestRedeliveredItemsAreFoundAmongIdleCampaigns(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.idle(60)
	q := c.open("one", queue.Config{AckWait: time.Second})
	publish(t, q, item.Item{ID: "one-0"})
	c.submit("one")
	f, _ := c.requests()
	next := func() *queue.Lease {
		t.Helper()
		for begin := time.Now(); time.Since(begin) < patience; {
			_, leases, err := f.Next(t.Context(), time.Second)
			must(t, err)
			for _, l := range leases {
				return l
			}
		}
		t.Fatal("timeout")
		return nil
	}
	must(t, next().Retry(t.Context(), 500*time.Millisecond))
	if l := next(); l.Attempt() != 2 {
		t.Errorf("attempt %d after a retry, want 2", l.Attempt())
	}
	l := next() // the lease has expired
	if l.Attempt() != 3 {
		t.Errorf("attempt %d after an expired lease, want 3", l.Attempt())
	}
	must(t, l.Ack(t.Context()))
}
