package gpuworker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// plainWork is a dispatcher without work.
type plainWork struct{}

func (plainWork) Next(context.Context, time.Duration) (Assignment, []*queue.Lease, error) {
	return Assignment{}, nil, nil
}

// recordingWork is a dispatcher without work that records what a worker tells it, as a Fleet is told.
type recordingWork struct {
	plainWork
	calls []string
}

func (r *recordingWork) Suspend(campaign string, d time.Duration, _ error) {
	r.calls = append(r.calls, fmt.Sprintf("suspend %s %v", campaign, d))
}

func (r *recordingWork) LeaseOne(campaign string, one bool) {
	r.calls = append(r.calls, fmt.Sprintf("one %s %v", campaign, one))
}

func (r *recordingWork) LeaseFirst(campaign string) { r.calls = append(r.calls, "first "+campaign) }

// quietWorker is a worker without work and logs.
func quietWorker(t *testing.T, changes ...func(*Config)) *Worker {
	t.Helper()
	in, err := telemetry.NewInstruments(metricnoop.NewMeterProvider().Meter(""))
	must(t, err)
	cfg := Config{
		Work: plainWork{}, Name: "tester", Logger: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""), Instruments: in,
	}
	for _, change := range changes {
		change(&cfg)
	}
	w, err := New(cfg)
	must(t, err)
	return w
}

func logTo(out io.Writer) func(*Config) {
	return func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(out, nil)) }
}

var (
	must       = workertest.Must
	emptyStore = workertest.Store
)

// internalQueue returns a queue on its own server.
func internalQueue(t *testing.T, cfg queue.Config) *queue.Queue {
	t.Helper()
	cfg.Campaign = "a"
	return workertest.Queue(t, cfg)
}

// leaseNew publishes items, and leases them.
func leaseNew(t *testing.T, q *queue.Queue, n int) []*queue.Lease {
	t.Helper()
	work := make([]queue.Work, n)
	for i := range work {
		work[i] = queue.Work{Class: "class", ID: fmt.Sprint("item", i), Payload: []byte("{}")}
	}
	must(t, q.PublishBatch(t.Context(), work))
	return leaseAgain(t, q, n)
}

// leaseAgain leases items that are in the queue.
func leaseAgain(t *testing.T, q *queue.Queue, n int) []*queue.Lease {
	t.Helper()
	leases, err := q.Lease(t.Context(), n, 20*time.Second)
	if err != nil || len(leases) != n {
		t.Fatalf("%d leases, want %d: %v", len(leases), n, err)
	}
	return leases
}

// remarked releases an item with marks, and leases it again.
func remarked(t *testing.T, q *queue.Queue, l *queue.Lease, m queue.Marks) *queue.Lease {
	t.Helper()
	must(t, l.ReleaseMarked(t.Context(), m))
	return leaseAgain(t, q, 1)[0]
}

// retryOf uses an attempt of an item, and leases it again.
func retryOf(t *testing.T, q *queue.Queue, l *queue.Lease) *queue.Lease {
	t.Helper()
	must(t, l.Retry(t.Context(), 0))
	return leaseAgain(t, q, 1)[0]
}

// ids returns the ids of leases, in order.
func ids(leases []*queue.Lease) string {
	var out []string
	for _, l := range leases {
		out = append(out, l.ID())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// An item runs alone after a lost attempt, a dispute, or ten failures of the environment.
func TestSuspects(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	l := leaseNew(t, q, 1)[0]
	for _, c := range []struct {
		marks queue.Marks
		want  bool
	}{
		{queue.Marks{}, false},
		{queue.Marks{Passes: 3, Faults: maxFaults - 1}, false},
		{queue.Marks{Faults: maxFaults}, true},
		{queue.Marks{Disputed: []string{"other"}}, true},
	} {
		l = remarked(t, q, l, c.marks)
		if got := suspect(l); got != c.want {
			t.Errorf("%+v: suspect is %v", c.marks, got)
		}
	}
	l = retryOf(t, q, remarked(t, q, l, queue.Marks{}))
	if !suspect(l) {
		t.Error("the second attempt at an item is no suspect")
	}
}

// A suspect starts alone, while the worker holds nothing else.
func TestAdmission(t *testing.T) {
	t.Parallel()
	const campaign = "a"
	q, work := internalQueue(t, queue.Config{}), &recordingWork{}
	w := quietWorker(t, func(cfg *Config) {
		cfg.Work = work
		cfg.Peers = func(context.Context) (int, error) { return 1, nil }
	})
	w.breaker.Succeed(campaign, item.Item{ID: "good", Campaign: campaign})
	all := leaseNew(t, q, 4)
	// admit admits leases, and returns the released ones with the admitted ones.
	admit := func(name, wantStart, wantReleased string, wantAlone bool, leases ...*queue.Lease) []*queue.Lease {
		t.Helper()
		work.calls = nil
		start, alone := w.admit(t.Context(), campaign, leases)
		if ids(start) != wantStart || alone != wantAlone {
			t.Errorf("%s: started %q, alone %v", name, ids(start), alone)
		}
		var released []*queue.Lease
		if n := len(leases) - len(start); n > 0 {
			released = leaseAgain(t, q, n)
		}
		if ids(released) != wantReleased {
			t.Errorf("%s: released %q", name, ids(released))
		}
		return append(start, released...)
	}
	admit("plain items", "item0 item1 item2 item3", "", false, all...)

	all[0] = remarked(t, q, all[0], queue.Marks{Faults: maxFaults})
	all[1] = remarked(t, q, all[1], queue.Marks{Faults: maxFaults})
	again := admit("suspects and others", "item2 item3", "item0 item1", false, all...)
	plain, suspects := again[:2], again[2:]
	if len(work.calls) > 0 {
		t.Errorf("calls %q", work.calls)
	}
	slices.SortFunc(suspects, func(a, b *queue.Lease) int { return strings.Compare(a.ID(), b.ID()) })
	suspects = admit("suspects only", "item0", "item1", true, suspects...)
	one := admit("one suspect", "item0", "", true, suspects[0])

	// The worker holds another item until the test settles it.
	held := &task{assigned: newAssigned(Assignment{}, 1, nil, 0), ctx: t.Context(), lease: plain[0]}
	w.leases.add([]*task{held})
	work.calls = nil
	waited := make(chan bool, 1)
	go func(leases []*queue.Lease) {
		start, alone := w.admit(t.Context(), campaign, leases)
		waited <- len(start) == 0 && !alone
	}(one[:1])
	one = leaseAgain(t, q, 1) // released while the other item is held
	w.end(held)
	if !<-waited || ids(one) != "item0" {
		t.Errorf("suspect beside a held item: released %q, or started", ids(one))
	}
	if got := strings.Join(work.calls, "; "); got != "first a" || w.leases.count() != 0 {
		t.Errorf("calls %q, %d held items", got, w.leases.count())
	}

	// This worker disputed the item, and another worker should take it.
	l := remarked(t, q, one[0], queue.Marks{Disputed: []string{"tester"}, Passes: 3})
	passed := admit("disputed item", "", "item0", false, l)
	if len(work.calls) != 1 || !strings.HasPrefix(work.calls[0], "suspend a ") || passed[0].Marks().Passes != 4 {
		t.Errorf("calls %q, marks %+v", work.calls, passed[0].Marks())
	}
	passed = admit("disputed and plain item", "item2", "item0", false, passed[0], plain[0])
	if len(work.calls) > 0 {
		t.Errorf("calls %q", work.calls)
	}
	// A plain item beside nothing passed does not suspend.
	admit("plain item", "item2", "", false, passed[0])
	if len(work.calls) > 0 {
		t.Errorf("calls %q", work.calls)
	}
}

// The wait for held items ends when they are settled, or when the worker drains.
func TestAwaitSettled(t *testing.T) {
	t.Parallel()
	w := quietWorker(t)
	w.awaitSettled(t.Context()) // holds nothing
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker(t)
		w.settled = make(chan struct{}, 1)
		tasks := []*task{{}, {}}
		w.leases.add(tasks)
		ctx, drain := context.WithTimeout(t.Context(), time.Minute)
		defer drain()
		begin := time.Now()
		w.leases.remove(tasks[0])
		w.settled <- struct{}{} // one of two
		w.awaitSettled(ctx)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("waited %v beside a held item", took)
		}
	})
}

// The dispatcher leases single items while only suspects are leased. Assignments without items end at once.
func TestStartOfLeasesThatAreReleased(t *testing.T) {
	t.Parallel()
	q, work := internalQueue(t, queue.Config{}), &recordingWork{}
	w := quietWorker(t, func(cfg *Config) {
		cfg.Work = work
		cfg.Peers = func(context.Context) (int, error) { return 1, nil }
	})
	ended := 0
	a := Assignment{Campaign: "a", Done: func() { ended++ }}
	l := remarked(t, q, leaseNew(t, q, 1)[0], queue.Marks{Disputed: []string{"tester"}, Passes: 1})
	must(t, w.startLeases(t.Context(), a, []*queue.Lease{l}, nil))
	if got := strings.Join(work.calls, "; "); !strings.HasPrefix(got, "suspend a ") || !strings.HasSuffix(got, "; one a true") || ended != 1 {
		t.Errorf("calls %q, %d ends", got, ended)
	}

	// The leases of a suspended campaign return before its files are tested.
	l = remarked(t, q, leaseAgain(t, q, 1)[0], queue.Marks{})
	for range guard.FailuresToSuspend {
		failsNow(w, "a", errItem)
	}
	work.calls = nil
	must(t, w.startLeases(t.Context(), a, []*queue.Lease{l}, nil))
	if w.breaker.Circuit("a") != nil || len(work.calls) != 0 || ended != 2 {
		t.Errorf("suspended: %v, calls %q, %d ends", w.breaker.Circuit("a") != nil, work.calls, ended)
	}
	if l = leaseAgain(t, q, 1)[0]; l.Attempt() != 1 || l.Marks().Passes != 0 {
		t.Errorf("attempt %d with %+v", l.Attempt(), l.Marks())
	}
	// The circuit of a worker is not that of a campaign without a name.
	for range guard.FailuresToSuspend {
		failsNow(w, "", errItem)
	}
	a.Campaign = ""
	if err := w.startLeases(t.Context(), a, nil, nil); err != nil || w.breaker.Circuit("") == nil || ended != 3 {
		t.Errorf("%v, %d ends", err, ended)
	}
}

// A lost release is logged: the lease expires.
func TestReleaseThatFails(t *testing.T) {
	t.Parallel()
	q, log := internalQueue(t, queue.Config{}), new(strings.Builder)
	w := quietWorker(t, logTo(log))
	leases := leaseNew(t, q, 2)
	must(t, leases[0].Ack(t.Context()))
	w.releaseEach(t.Context(), leases[1:], 0)
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
	w.releaseEach(t.Context(), leases[:1], 0)
	if !strings.Contains(log.String(), "could not release item") || !strings.Contains(log.String(), "item0") {
		t.Errorf("log: %s", log)
	}
}
