package gpuworker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/storage"
)

// workerOf returns a worker that does not run, and its store.
func workerOf(t *testing.T, change ...func(*Config)) (*Worker, *storage.Dir) {
	t.Helper()
	dir := emptyStore(t)
	work := func(c *Config) {
		c.Work = Single{Queue: leases(nil), Items: Assignment{Store: dir, Sources: manifest.Files{}, Engine: &restore.Engine{}}}
	}
	return quietWorker(t, append([]func(*Config){work}, change...)...), dir
}

// queueOf returns a queue of items with two attempts.
func queueOf(t *testing.T) *queue.Queue {
	t.Helper()
	q := workertest.Queue(t, queue.Config{MaxAttempts: 2})
	// The numbers of results begin anywhere.
	first := at(t, q, "first", 1, queue.Marks{})
	must(t, errors.Join(first.PublishResult(t.Context(), []byte("{}")), first.Ack(t.Context())))
	return q
}

// leased leases one item.
func leased(t *testing.T, q *queue.Queue) *queue.Lease {
	t.Helper()
	all, err := q.Lease(t.Context(), 1, 10*time.Second)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d items, %v", len(all), err)
	}
	return all[0]
}

// at publishes an item and leases it for an attempt with marks.
func at(t *testing.T, q *queue.Queue, id string, attempt int, m queue.Marks) *queue.Lease {
	t.Helper()
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: id, Payload: []byte("{}")}}))
	l := leased(t, q)
	for l.Attempt() < attempt {
		must(t, l.Retry(t.Context(), time.Millisecond))
		l = leased(t, q)
	}
	must(t, l.ReleaseMarked(t.Context(), m))
	return leased(t, q)
}

// events returns the number of the last result in a queue.
func events(t *testing.T, q *queue.Queue) int {
	t.Helper()
	last, err := q.LastResult(t.Context())
	must(t, err)
	return int(last)
}

// buried returns the number of outcomes of dead items in a queue.
func buried(t *testing.T, q *queue.Queue) (n int) {
	t.Helper()
	if events(t, q) == 0 {
		return 0
	}
	for event, err := range q.Results(t.Context(), 0) {
		must(t, err)
		var e item.Event
		must(t, json.Unmarshal(event.Payload, &e))
		if e.Outcome == item.OutcomeDead {
			n++
		}
		if event.Behind == 0 {
			break
		}
	}
	return n
}

// Each outcome has its effect on the queue: an event, one of a dead item, or another lease with its attempt and marks.
func TestReportOfOutcomes(t *testing.T) {
	t.Parallel()
	q, other := queueOf(t), errors.New("other")
	for id, tt := range map[string]struct {
		outcome  outcome
		patience time.Duration
		attempt  int
		marks    queue.Marks
		checked  bool
		events   int
		dead     int
		next     int // attempt of the next lease; 0: none
		left     queue.Marks
		log      string // outcome of the stored record
		refused  bool
	}{
		"faulted-blame":  {outcome: outcome{returned, fault, job.SourceError{Err: storage.ErrUnavailable}}, marks: queue.Marks{Faults: maxFaults}, events: 1, dead: 1, log: "dead"},
		"source-patient": {outcome: outcome{returned, fault, job.SourceError{Err: storage.ErrUnavailable}}, patience: time.Hour, next: 2, log: "retried"},
		"store-patient":  {outcome: outcome{returned, fault, storage.ErrUnavailable}, patience: time.Hour, next: 1, left: queue.Marks{Faults: 1}},
		"disputed":       {outcome: outcome{returned, doubt, other}, next: 1, left: queue.Marks{Disputed: []string{"tester"}}, log: "disputed"},
		"disputed-input": {outcome: outcome{returned, doubt, job.ErrInput}, marks: queue.Marks{Disputed: []string{"a"}}, events: 1, log: "failed"},
		"disputed-check": {outcome: outcome{returned, doubt, other}, marks: queue.Marks{Disputed: []string{"a"}}, checked: true, events: 1},
		"retried":        {outcome: outcome{retried, "", other}, next: 2, log: "retried"},
		"retried-last":   {outcome: outcome{retried, "", other}, attempt: 2, events: 1, dead: 1, log: "dead"},
		"refused":        {outcome: outcome{returned, refusal, other}, next: 1, refused: true},
		"failed":         {outcome: outcome{failed, "", other}, events: 1, log: "failed"},
		"cancelled":      {outcome: outcome{dropped, "", other}},
		"done":           {outcome: outcome{kind: done}, events: 1},
	} {
		w, dir := workerOf(t, func(c *Config) { c.Patience, c.Log = tt.patience, NewTail(slog.DiscardHandler) })
		refusals := 0
		in := newAssigned(Assignment{Campaign: "a", Store: dir, Refuse: func(error) { refusals++ }}, 1, nil, 0)
		tk := &task{lease: at(t, q, id, tt.attempt, tt.marks), assigned: in, ctx: t.Context(), Job: job.Job{Item: item.Item{ID: id, Campaign: "a"}}}
		if tt.checked {
			tk.checked = &record.Checked{}
		}
		before, dead := events(t, q), buried(t, q)
		if err := w.conclude(t.Context(), tk.lease, tk, tt.outcome, &item.Result{Item: tk.Item, Outcome: item.OutcomeDone}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if n, m := events(t, q)-before, buried(t, q)-dead; n != tt.events || m != tt.dead || (refusals > 0) != tt.refused {
			t.Errorf("%s: %d events, %d dead, %d refusals", id, n, m, refusals)
		}
		if logs := storedLogs(t, dir); (len(logs) > 0) != (tt.log != "") || len(logs) > 0 && logs[0].Outcome != tt.log {
			t.Errorf("%s: records of attempts %+v, want %q", id, logs, tt.log)
		}
		wantLeft(t, q, id, tt.next, tt.left)
	}
}

// wantLeft checks the attempt and the marks of the item that the queue has left, and acknowledges it. Attempt 0: none is left.
func wantLeft(t *testing.T, q *queue.Queue, id string, attempt int, marks queue.Marks) {
	t.Helper()
	if attempt == 0 {
		wantNone(t, q, id)
		return
	}
	l := leased(t, q)
	if m := l.Marks(); l.Attempt() != attempt || m.Faults != marks.Faults || !slices.Equal(m.Disputed, marks.Disputed) {
		t.Errorf("%s: attempt %d with %+v", id, l.Attempt(), m)
	}
	if err := l.Ack(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantNone checks that the queue has no item, also no leased one.
func wantNone(t *testing.T, q *queue.Queue, id string) {
	t.Helper()
	if n, err := q.Size(t.Context()); err != nil || n > 0 {
		t.Errorf("%s: the queue has %d items, %v", id, n, err)
	}
}

// TestDropOfCancelledItem: the queue of a cancelled campaign may be gone. A lease that can no longer be acknowledged is a line of the log and no error.
func TestDropOfCancelledItem(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w, dir := workerOf(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	tk := &task{lease: at(t, queueOf(t), "a", 1, queue.Marks{}), ctx: t.Context(), Job: job.Job{Item: item.Item{ID: "a", Campaign: "test"}}}
	tk.assigned = newAssigned(Assignment{Campaign: "test", Store: dir}, 1, nil, 0)
	for _, again := range []bool{false, true} {
		if err := w.conclude(t.Context(), tk.lease, tk, outcome{dropped, "", errCancelled}, nil); err != nil || strings.Contains(log.String(), "could not acknowledge") != again {
			t.Errorf("acknowledged before %v: %v, log %s", again, err, log.String())
		}
	}
}

// Only a computed result counts as a success of the environment, and costs device-seconds.
func TestFoundResultIsNoSuccess(t *testing.T) {
	t.Parallel()
	q := queueOf(t)
	for batch, id := range []string{"found", "computed"} {
		w, dir := workerOf(t)
		tk := &task{lease: at(t, q, id, 1, queue.Marks{}), assigned: newAssigned(Assignment{Campaign: "test", Store: dir}, 1, nil, 0), ctx: t.Context(), Job: job.Job{Batch: batch}}
		tk.Item, tk.Seconds = item.Item{ID: id, Campaign: "test"}, 1.5*float64(batch)
		before := uint64(events(t, q))
		must(t, w.conclude(t.Context(), tk.lease, tk, outcome{kind: done}, &item.Result{Item: tk.Item, Seconds: 1.5}))
		for event, err := range q.Results(t.Context(), before) {
			must(t, err)
			var e item.Event
			must(t, json.Unmarshal(event.Payload, &e))
			if e.Seconds != tk.Seconds {
				t.Errorf("%s: %g device-seconds", id, e.Seconds)
			}
			break
		}
		if good := w.breaker.LastGood("test"); (good != nil) != (batch > 0) {
			t.Errorf("%s: the last good item is %v", id, good)
		}
	}
}

// A released item that another worker has finished is settled; that of a cancelled campaign is dropped.
func TestReleaseOfItems(t *testing.T) {
	t.Parallel()
	q := queueOf(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for id, tt := range map[string]struct {
		attempt  int
		noID     bool
		finished bool
		lifetime context.Context
		fault    error
		marks    queue.Marks
		events   int
		next     int
		faults   int
		log      string // reason in the stored record
	}{
		"plain":           {next: 1},
		"cancelled":       {lifetime: ended},
		"first-finished":  {finished: true, next: 1},
		"second":          {attempt: 2, next: 2},
		"second-finished": {attempt: 2, finished: true, events: 1},
		"second-undecode": {attempt: 2, finished: true, noID: true, next: 2},
		"faulted":         {fault: errors.New("device"), next: 1, faults: 1},
		"faulted-last":    {fault: errors.New("device"), marks: queue.Marks{Faults: maxFaults}, events: 1, log: "11 failures of the environment, the last while it ran alone: device"},
	} {
		w, dir := workerOf(t, func(c *Config) { c.Log = NewTail(slog.DiscardHandler) })
		tk := &task{lease: at(t, q, id, tt.attempt, tt.marks), ctx: t.Context(), fault: tt.fault, Job: job.Job{Item: item.Item{ID: id}}}
		tk.assigned = newAssigned(Assignment{Campaign: "a", Store: dir, Lifetime: tt.lifetime}, 1, nil, 0)
		if tt.finished {
			data, err := json.Marshal(item.Result{Item: tk.Item})
			if err == nil {
				err = dir.Put(t.Context(), item.Key(id, item.FileResult), data)
			}
			must(t, err)
		}
		if tt.noID {
			tk.Item = item.Item{}
		}
		before := events(t, q)
		o, res := w.leftOver(t.Context(), tk)
		if err := w.conclude(t.Context(), tk.lease, tk, o, res); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if n := events(t, q) - before; n != tt.events {
			t.Errorf("%s: %d events", id, n)
		}
		if logs := storedLogs(t, dir); (len(logs) > 0) != (tt.log != "") || len(logs) > 0 && (logs[0].Reason != tt.log || logs[0].Outcome != "dead") {
			t.Errorf("%s: records of attempts %+v, want %q", id, logs, tt.log)
		}
		if tt.next == 0 {
			wantNone(t, q, id)
			continue
		}
		l := leased(t, q)
		if l.Attempt() != tt.next || l.Marks().Faults != tt.faults {
			t.Errorf("%s: attempt %d with %+v", id, l.Attempt(), l.Marks())
		}
		if err := l.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Errors of the queue are tolerated if the worker is configured so, except for a closed queue.
func TestTransientErrorsOfQueue(t *testing.T) {
	t.Parallel()
	tk := &task{Job: job.Job{Item: item.Item{Name: "a"}}, lease: &queue.Lease{}}
	for _, tolerates := range []bool{false, true} {
		w, _ := workerOf(t, func(c *Config) { c.TolerateQueueErrors, c.Idle = tolerates, time.Millisecond })
		if err := w.ignoreTransient("settle", tk, nil); err != nil {
			t.Error(err)
		}
		if err := w.ignoreTransient("settle", tk, queue.ErrUnavailable); (err == nil) != tolerates {
			t.Errorf("tolerates %v: %v", tolerates, err)
		}
		if err := w.ignoreTransient("settle", tk, queue.ErrClosed); !errors.Is(err, queue.ErrClosed) || err.Error()[:13] != "settle item a" {
			t.Errorf("closed: %v", err)
		}
		for cause, ends := range map[error]bool{queue.ErrNotReady: false, queue.ErrUnavailable: false, errors.New("other"): !tolerates, queue.ErrClosed: true} {
			if err := w.pauseAfter(t.Context(), cause); (err != nil) != ends {
				t.Errorf("tolerates %v: %v ends with %v", tolerates, cause, err)
			}
		}
		ctx, cancel := w.shutdownContext(t.Context())
		if _, limited := ctx.Deadline(); limited {
			t.Error("calls of a running worker are limited")
		}
		cancel()
		w.stats.draining.Store(true)
		ctx, cancel = w.shutdownContext(t.Context())
		if end, limited := ctx.Deadline(); !limited || time.Until(end) > shutdownTimeout {
			t.Error("calls of a draining worker are not limited")
		}
		cancel()
	}
}

// An item is settled once, and counted.
func TestSettleOnce(t *testing.T) {
	t.Parallel()
	w, dir := workerOf(t)
	q := queueOf(t)
	ended := 0
	in := newAssigned(Assignment{Campaign: "test", Store: dir, Done: func() { ended++ }}, 1, nil, 0)
	tk := &task{lease: at(t, q, "a", 1, queue.Marks{}), assigned: in, ctx: t.Context(), Job: job.Job{Item: item.Item{ID: "a"}}}
	w.leases.add([]*task{tk})
	before := events(t, q)
	must(t, w.settle(t.Context(), tk, outcome{failed, "", job.ErrInput}, nil))
	if events(t, q) != before+1 || w.stats.settled.Load() != 1 || ended != 1 || w.leases.count() != 0 || len(w.settled) != 1 || w.watchdog.Active() {
		t.Errorf("%d events, %d settled, %d assignments ended, %d leases", events(t, q)-before, w.stats.settled.Load(), ended, w.leases.count())
	}
	late := &task{lease: &queue.Lease{}, assigned: in, ctx: t.Context()}
	if err := w.settle(t.Context(), late, outcome{kind: returned, why: drain}, nil); err != nil || w.stats.settled.Load() != 1 {
		t.Errorf("a released item: %v", err)
	}
}

// Items of equal plans form a group, except for those at other steps.
func TestGroups(t *testing.T) {
	t.Parallel()
	a, b := &task{}, &task{}
	c, d := &task{Job: job.Job{Checkpoint: &job.Checkpoint{}}}, &task{}
	c.Checkpoint.State.Step = 3
	d.Plan.Task = "other"
	p := &task{preflight: &record.Preflight{}}
	got := group([]*task{a, c, d, p, b, p})
	want := [][]*task{{a, b}, {c}, {d}, {p, p}}
	if len(got) != len(want) {
		t.Fatalf("%d groups", len(got))
	}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("group %d has %d items", i, len(got[i]))
		}
	}
}

// solves is a restorer with a prescribed solver.
type solves struct {
	restorer
	most  int
	sizes []int
	run   func(n int) error
}

func (s *solves) size(left []*task) int { return min(s.most, len(left)) }

func (s *solves) solve(_ context.Context, batch []*task) error {
	s.sizes = append(s.sizes, len(batch))
	return s.run(len(batch))
}

// A failed batch is solved in parts: in halves when memory is short, else item by item. A lost device ends the worker.
func TestPartsOfFailedBatch(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	for name, tt := range map[string]struct {
		size     int
		run      func(n int) error
		sizes    []int
		restored []int
		released int
		fails    bool
	}{
		"all":    {5, func(int) error { return nil }, []int{5}, []int{5}, 0, false},
		"parts":  {2, func(int) error { return nil }, []int{2, 2, 1}, []int{2, 2, 1}, 0, false},
		"memory": {5, func(n int) error { return when(n > 2, onnxruntime.ErrMemory) }, []int{5, 2, 2, 1}, []int{2, 2, 1}, 0, false},
		"bad":    {5, func(n int) error { return when(n > 1, bad) }, []int{5, 1, 1, 1, 1, 1}, []int{1, 1, 1, 1, 1}, 0, false},
		"lost":   {3, func(n int) error { return when(n < 3, onnxruntime.ErrDeviceLost) }, []int{3, 2}, []int{3}, 2, true},
		"lost in a part": {5, func(n int) error {
			return when(n > 2, onnxruntime.ErrMemory, when(n == 1, onnxruntime.ErrFallback))
		}, []int{5, 2, 2, 1}, []int{2, 2}, 1, true},
	} {
		w, _ := workerOf(t)
		s := &solves{most: tt.size, run: tt.run}
		w.restorer = s
		in := newAssigned(Assignment{}, 5, nil, 0)
		tasks := make([]*task, 5)
		for i := range tasks {
			tasks[i] = &task{assigned: in, ctx: t.Context(), lease: &queue.Lease{}}
		}
		out := make(chan []*task, 5)
		err := w.restore(t.Context(), tasks, out)
		var restored []int
		for range len(out) {
			restored = append(restored, len(<-out))
		}
		if (err != nil) != tt.fails || !slices.Equal(s.sizes, tt.sizes) || !slices.Equal(restored, tt.restored) {
			t.Errorf("%s: %v, batches %v, restored %v", name, err, s.sizes, restored)
		}
		left := len(tasks) - sum(restored) - int(w.stats.settled.Load())
		faulty := slices.ContainsFunc(tasks, func(tk *task) bool { return tk.fault != nil })
		if left != tt.released || faulty != tt.fails {
			t.Errorf("%s: %d items are left to be released, with a fault: %v", name, left, faulty)
		}
	}
	// A draining worker starts no further batch.
	w, _ := workerOf(t)
	s := &solves{most: 1, run: func(int) error { return nil }}
	w.restorer = s
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tk := &task{assigned: newAssigned(Assignment{}, 1, nil, 0), ctx: t.Context(), lease: &queue.Lease{}}
	if err := w.restore(ctx, []*task{tk}, nil); err != nil || len(s.sizes) != 0 || w.stats.settled.Load() != 0 {
		t.Errorf("a draining worker: %v, %v", err, s.sizes)
	}
}

func sum(sizes []int) (all int) {
	for _, n := range sizes {
		all += n
	}
	return all
}

// when returns err if a condition holds, and the alternatives otherwise.
func when(holds bool, err error, otherwise ...error) error {
	if holds {
		return err
	}
	return errors.Join(otherwise...)
}
