package coordinator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// access is one coordinator's access to the store. While it is broken every call fails, or every write.
type access struct{ broken, readOnly atomic.Bool }

func (a *access) check(call, _ string) error {
	isWrite := call != "get" && call != "list"
	if a.broken.Load() || isWrite && a.readOnly.Load() {
		return fmt.Errorf("%w: the keys have expired", storage.ErrAccess)
	}
	return nil
}

// candidate is a coordinator that takes part in the election.
type candidate struct {
	store   access
	service *coordinator.Service
	leads   atomic.Bool
	terms   atomic.Int64
	stop    func()
}

// stand starts a coordinator with its own access to the store.
func (tc *testCluster) stand(name string) *candidate {
	tc.t.Helper()
	c := &candidate{}
	service, err := coordinator.New(coordinator.Config{
		Name: name, Board: tc.board, Open: tc.open, Sweep: tc.sweep, Store: &hookedStore{Store: tc.store, before: c.store.check}, StoreAddress: "memory", Sources: manifest.Files{},
		AckWait: 2 * time.Second, Tick: 20 * time.Millisecond, Stall: 500 * time.Millisecond, Probe: 60 * time.Millisecond,
		Logger: tc.log.With("coordinator", name), Tracer: noop.NewTracerProvider().Tracer(""),
	})
	must(tc.t, err)
	c.service = service
	// A tenth of the speed of time: a slow machine ends no term, and a leader that resigns is replaced as soon as at full speed.
	begin := time.Now()
	slowly := func() time.Time { return begin.Add(time.Since(begin) / 10) }
	election, err := queue.NewElection(tc.t.Context(), tc.nc, queue.ElectionConfig{Name: name, TTL: time.Second, Fit: service.Fit, Logger: tc.log, Now: slowly})
	must(tc.t, err)
	stopHealth := tc.background(service.CheckHealth)
	stopElection := tc.background(func(ctx context.Context) error {
		return election.Run(ctx, func(ctx context.Context) error {
			c.terms.Add(1)
			c.leads.Store(true)
			defer c.leads.Store(false)
			return service.Lead(ctx)
		})
	})
	c.stop = func() { stopElection(); stopHealth() }
	return c
}

// slowCampaign submits a campaign whose items wait for the returned function.
func (tc *testCluster) slowCampaign(name string) (id string, finish func()) {
	gate := make(chan struct{})
	tc.set(func(item.Item, int) error {
		<-gate
		return nil
	})
	id = tc.submit(name, 0)
	tc.work(id)
	return id, func() { close(gate) }
}

// TestLeaderThatCannotUseTheStoreStepsDown lets the keys of one coordinator expire, or only its permission to write.
func TestLeaderThatCannotUseTheStoreStepsDown(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(s *access, broken bool)
	}{
		{"expired keys", func(s *access, broken bool) { s.broken.Store(broken) }},
		{"no permission to write", func(s *access, broken bool) { s.readOnly.Store(broken) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			tc := newTestCluster(t, 5)
			id, finish := tc.slowCampaign("expired")
			a := tc.stand("a")
			wait(t, patience, "a leads", a.leads.Load)
			b := tc.stand("b")
			tc.await(id, "running", func(s record.CampaignStatus) bool { return s.Status.Counts.Running > 0 })
			c.set(&a.store, true)
			finish() // the report is the next write
			wait(t, patience, "b leads", b.leads.Load)
			tc.awaitPhase(id, record.PhaseFinished)
			if a.leads.Load() || a.terms.Load() != 1 {
				t.Errorf("a leads: %v, terms: %d", a.leads.Load(), a.terms.Load())
			}
			c.set(&a.store, false)
			wait(t, patience, "a is fit", a.service.Fit)
			b.stop()
			wait(t, patience, "a leads again", a.leads.Load)
		})
	}
}

// TestOutageOfTheStore breaks the store for all coordinators: the leader keeps leading and says so, a standby takes over
// from a dead leader, and the campaign continues afterwards.
func TestOutageOfTheStore(t *testing.T) {
	tc := newTestCluster(t, 5)
	log := tc.recordLog()
	id, finish := tc.slowCampaign("outage")
	a := tc.stand("a")
	wait(t, patience, "a leads", a.leads.Load)
	b := tc.stand("b")
	tc.await(id, "running", func(s record.CampaignStatus) bool { return s.Status.Counts.Running > 0 })
	a.store.broken.Store(true)
	b.store.broken.Store(true)
	outage := func(s record.CampaignStatus) bool { return s.Status.Problem != "" }
	s := tc.await(id, "the outage in its status", outage)
	if s.Status.Counts.Items != 10 {
		t.Errorf("%+v", s.Status)
	}
	wait(t, patience, "the outage is logged", func() bool { return log.contains("the store is unavailable") })
	if !a.leads.Load() || a.terms.Load() != 1 || b.leads.Load() {
		t.Errorf("a leads: %v, terms: %d; b leads: %v", a.leads.Load(), a.terms.Load(), b.leads.Load())
	}
	a.stop()
	wait(t, patience, "b leads", b.leads.Load)
	finish()
	must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
	tc.await(id, "the outage in the status of b", outage)
	b.store.broken.Store(false)
	tc.awaitPhase(id, record.PhaseFinished)
	if s := tc.await(id, "no outage", func(s record.CampaignStatus) bool { return !outage(s) }); s.Status.Counts.Done != 10 {
		t.Errorf("%+v", s.Status)
	}
	if b.terms.Load() != 1 {
		t.Errorf("b led %d times", b.terms.Load())
	}
}

// TestAlarmBeforeAStreamIsFull expects an alarm in status and log, and its end.
func TestAlarmBeforeAStreamIsFull(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	log := tc.recordLog()
	id, finish := tc.slowCampaign("alarm")
	var messages atomic.Uint64
	messages.Store(85)
	tc.leadWith(func(c *coordinator.Config) {
		c.Usage = func(context.Context) ([]queue.StreamUsage, error) {
			return []queue.StreamUsage{{Name: "DDIFF_RESULT", Messages: messages.Load(), MaxMessages: 100}, {Name: "DDIFF_WORK", Messages: 9}}, nil
		}
	})
	s := tc.await(id, "an alarm", func(s record.CampaignStatus) bool { return s.Status.Problem != "" })
	if s.Status.Problem != "stream DDIFF_RESULT is 85 % full" || !log.contains("nearly full") {
		t.Errorf("problem %q", s.Status.Problem)
	}
	messages.Store(10)
	tc.await(id, "no alarm", func(s record.CampaignStatus) bool { return s.Status.Problem == "" })
	finish()
	tc.awaitPhase(id, record.PhaseFinished)
}
