package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// republished is the log line of a coordinator that has replaced a queue.
const republished = "published lost items again"

// logText collects log lines.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// recordLog returns the log of the coordinators that are started later.
func (tc *testCluster) recordLog() *logText {
	var l logText
	tc.log = slog.New(slog.NewTextHandler(io.MultiWriter(&l, tc.t.Output()), nil))
	return &l
}

// wait waits until reached reports true.
func wait(t *testing.T, limit time.Duration, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !reached(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reached within %v: %s", limit, what)
		}
	}
}

// lease leases n items of a running campaign.
func (tc *testCluster) lease(id string, n int) []*queue.Lease {
	tc.t.Helper()
	tc.await(id, "published items", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseRunning && s.Status.Windows > 0
	})
	q, err := tc.attach(tc.t.Context(), id)
	must(tc.t, err)
	var all []*queue.Lease
	wait(tc.t, patience, "leases", func() bool {
		leases, err := q.Lease(tc.t.Context(), n-len(all), time.Second)
		must(tc.t, err)
		all = append(all, leases...)
		return len(all) == n
	})
	return all
}

// preflight runs a worker until the campaign's items are published.
func (tc *testCluster) preflight(id string) {
	tc.t.Helper()
	stop := tc.work(id)
	tc.set(func(item.Item, int) error { return errHang })
	tc.await(id, "published items", func(s record.CampaignStatus) bool { return s.Status.Windows > 0 })
	stop()
	tc.set(nil)
}

// store stores the result of a leased item.
func (tc *testCluster) storeResult(id string, l *queue.Lease) {
	tc.t.Helper()
	var it item.Item
	must(tc.t, json.Unmarshal(l.Payload(), &it))
	data, err := json.Marshal(item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeDone, Finished: time.Now().UTC()})
	must(tc.t, err)
	must(tc.t, tc.store.Create(tc.t.Context(), id+"/"+item.Key(it.ID, item.FileResult), data))
}

// TestQueueOfItemsWithoutOutcomeStays acknowledges items that have a stored result, without an outcome. Neither the
// leader nor its successor drops the queue.
func TestQueueOfItemsWithoutOutcomeStays(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 8)
	log := tc.recordLog()
	id := tc.submit("silent", 0)
	stop := tc.lead()
	tc.preflight(id)
	for _, l := range tc.lease(id, 7) {
		tc.storeResult(id, l)
		must(t, l.Ack(t.Context()))
	}
	settled := func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 7 }
	tc.await(id, "7 items done", settled)
	stop()
	must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
	tc.lead()
	tc.await(id, "7 items done", settled)
	tc.work(id)
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != (record.Counts{Items: 16, Done: 16}) {
		t.Errorf("%+v", s.Status.Counts)
	}
	if log.contains(republished) {
		t.Error("the coordinator replaced a healthy queue")
	}
}

// TestQueueOfUndeliverableItemsStays leaves items in the queue that the server no longer delivers. They are in neither
// count of Depth until they are swept.
func TestQueueOfUndeliverableItemsStays(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	log := tc.recordLog()
	spec := tc.spec("stuck")
	spec.Attempts = 1
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	var checks atomic.Int64
	tc.leadWith(func(cfg *coordinator.Config) {
		cfg.Sweep, cfg.Tick, cfg.Stall = nil, 5*time.Millisecond, 10*time.Millisecond
		cfg.Now = func() time.Time { checks.Add(1); return time.Now() }
	})
	tc.preflight(c.ID)
	q, err := tc.attach(t.Context(), c.ID)
	must(t, err)
	useUp := func(ctx context.Context) error { // the deliveries of the items
		leases, err := q.Lease(ctx, 6, 50*time.Millisecond)
		for _, l := range leases {
			err = errors.Join(err, l.Retry(ctx, 0))
		}
		return err
	}
	wait(t, patience, "no deliverable item", func() bool {
		must(t, useUp(t.Context()))
		waiting, leased, err := q.Depth(t.Context())
		must(t, err)
		return waiting+leased == 0
	})
	n := checks.Load()
	wait(t, patience, "checks of the queue", func() bool { return checks.Load() > n+20 })
	if size, err := q.Size(t.Context()); err != nil || size != 6 {
		t.Errorf("the queue holds %d items (%v), want 6", size, err)
	}
	if log.contains(republished) {
		t.Error("the coordinator replaced a healthy queue")
	}
	tc.background(tc.sweep)
	tc.background(func(ctx context.Context) error { // the items are published again once
		for ctx.Err() == nil {
			_ = useUp(ctx) // until the end of the test
		}
		return nil
	})
	if s := tc.awaitPhase(c.ID, record.PhaseFinished); s.Status.Counts.Dead != 6 {
		t.Errorf("%+v", s.Status.Counts)
	}
}

// TestQueueOfBusyCampaignStays compares queue and ledger all the time while items are published and settled.
func TestQueueOfBusyCampaignStays(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 20)
	log := tc.recordLog()
	id := tc.submit("busy", 0)
	restless := func(cfg *coordinator.Config) { cfg.Tick, cfg.Stall = 2*time.Millisecond, time.Nanosecond }
	stop := tc.leadWith(restless)
	for range 4 {
		tc.work(id)
	}
	tc.await(id, "some items done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done >= 10 })
	stop()
	tc.leadWith(restless)
	tc.awaitPhase(id, record.PhaseFinished)
	if log.contains(republished) {
		t.Error("the coordinator replaced a healthy queue")
	}
	for item, n := range tc.started {
		if n > 1 && item != record.IDPreflight {
			t.Errorf("item %.12s was started %d times", item, n)
		}
	}
}

// TestLostItemsAreFound removes some items from a queue that holds others: they are published again within a bounded
// time.
func TestLostItemsAreFound(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 10)
	log := tc.recordLog()
	id := tc.submit("holes", 0)
	tc.lead()
	tc.preflight(id)
	for _, l := range tc.lease(id, 3) {
		must(t, l.Ack(t.Context()))
	}
	wait(t, 20*time.Second, republished, func() bool { return log.contains(republished) })
	tc.work(id)
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != (record.Counts{Items: 20, Done: 20}) {
		t.Errorf("%+v", s.Status.Counts)
	}
}
