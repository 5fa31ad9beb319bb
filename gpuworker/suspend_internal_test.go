package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/item"
	"ddiff/storage"
)

// stoppedClock is a clock that only the test moves.
type stoppedClock struct{ time time.Time }

func (c *stoppedClock) now() time.Time { return c.time }

func newStoppedClock() *stoppedClock {
	return &stoppedClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// breakerTask is a task of a campaign.
func breakerTask(campaign, it string) *task {
	a := newAssigned(Assignment{Campaign: campaign}, 1, nil, 0)
	return &task{assigned: a, Job: job.Job{Item: item.Item{ID: it, Campaign: campaign}}, ctx: context.Background(), written: 7}
}

var (
	errItem  = errors.New("the item is bad")
	errStore = fmt.Errorf("put:\n%w", storage.ErrReadOnly)
)

// failsNow records a failure of the worker or of a campaign.
func failsNow(w *Worker, key string, err error) {
	w.breaker.Fail(key, err, func() (*task, func()) { return breakerTask("a", "1"), func() {} })
}

// Unreadable files suspend their campaign if the dispatcher can skip it. All other failures suspend the worker.
func TestFailuresSuspendWorkerOrCampaign(t *testing.T) {
	t.Parallel()
	file := job.SourceError{Err: errItem}
	for _, c := range []struct {
		name        string
		work        dispatcher
		err         error
		key, called string
	}{
		{"files", &recordingWork{}, file, "a", "suspend a 1s"},
		{"files of a run in one process", plainWork{}, file, "", ""},
		{"other failures", &recordingWork{}, errItem, "", ""},
	} {
		w := quietWorker(t, func(cfg *Config) { cfg.Work = c.work })
		task := breakerTask("a", "1")
		for range guard.FailuresToSuspend {
			if w.breaker.Circuit(c.key) != nil {
				t.Errorf("%s: opened early", c.name)
			}
			w.noteFailure(task, c.err)
		}
		if w.breaker.Circuit(c.key) == nil {
			t.Errorf("%s: circuit %q is closed", c.name, c.key)
		}
		if r, ok := c.work.(*recordingWork); ok && strings.Join(r.calls, "; ") != c.called {
			t.Errorf("%s: %q, want %q", c.name, r.calls, c.called)
		}
	}
}

// probing is a restorer whose tests of the device fail in a given way.
type probing struct {
	restorer
	errs  []error
	calls int
}

func (p *probing) probe(context.Context, *task, *item.Item) error {
	p.calls++
	if p.calls > len(p.errs) {
		return nil
	}
	return p.errs[p.calls-1]
}

// A suspended worker tests its environment until it passes, and ends for a lost device or after its patience.
func TestSuspendedWorkerTestsItsEnvironment(t *testing.T) {
	t.Parallel()
	brief := storage.ErrUnavailable
	for _, c := range []struct {
		name     string
		errs     []error
		patience time.Duration
		waited   time.Duration // since the first failure
		calls    int
		want     error
	}{
		{"passes at once", nil, 0, 0, 1, nil},
		{"passes later", []error{errStore, brief, errItem}, 0, 0, 4, nil},
		{"device lost", []error{onnxruntime.ErrDeviceLost}, 0, 0, 1, onnxruntime.ErrDeviceLost},
		{"device fails", []error{onnxruntime.ErrDevice}, 0, 0, 1, onnxruntime.ErrDevice},
		{"fallback", []error{brief, onnxruntime.ErrFallback}, 0, 0, 2, onnxruntime.ErrFallback},
		{"patient, lasting failure", []error{errStore}, time.Hour, 0, 1, storage.ErrReadOnly},
		{"patient, temporary failure", []error{brief}, time.Hour, time.Hour - 1, 2, nil},
		{"patient, temporary failure for long", []error{brief}, time.Hour, time.Hour, 1, brief},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock, store := newStoppedClock(), emptyStore(t)
			w := quietWorker(t, func(cfg *Config) { cfg.Now, cfg.Patience, cfg.ProbePause = clock.now, c.patience, time.Millisecond })
			p := &probing{errs: c.errs}
			w.restorer = p
			task := breakerTask("a", "1")
			task.assigned.Store = store
			if err := w.awaitEnvironment(t.Context()); err != nil || p.calls != 0 {
				t.Fatalf("the worker was not suspended: %v, %d tests", err, p.calls)
			}
			for range guard.FailuresToSuspend {
				w.noteFailure(task, errItem)
			}
			w.breaker.Circuit("").Since = clock.time.Add(-c.waited)
			if err := w.awaitEnvironment(t.Context()); !errors.Is(err, c.want) || p.calls != c.calls {
				t.Errorf("%v after %d tests, want %v after %d", err, p.calls, c.want, c.calls)
			}
			if open := w.breaker.Circuit("") != nil; open != (c.want != nil) {
				t.Errorf("the worker is suspended: %v", open)
			}
		})
	}
}

// A draining worker ends the tests of its environment without an error.
func TestDrainEndsTestsOfEnvironment(t *testing.T) {
	t.Parallel()
	w := quietWorker(t)
	task := breakerTask("a", "1")
	task.assigned.Store = emptyStore(t)
	ctx, drain := context.WithCancel(t.Context())
	w.restorer = drainingProbe{drain: drain}
	for range guard.FailuresToSuspend {
		w.noteFailure(task, errItem)
	}
	if err := w.awaitEnvironment(ctx); err != nil {
		t.Errorf("error %v", err)
	}
	if w.breaker.Circuit("") == nil {
		t.Error("the circuit closed without a passed test")
	}
}

// drainingProbe loses the device while the worker begins to drain.
type drainingProbe struct {
	restorer
	drain func()
}

func (d drainingProbe) probe(context.Context, *task, *item.Item) error {
	d.drain()
	return onnxruntime.ErrDeviceLost
}

// oneFile is a dataset of which each file can be read, or none.
type oneFile struct{ denied *atomic.Bool }

func (o oneFile) Get(context.Context, string) ([]byte, error) {
	if o.denied.Load() {
		return nil, storage.ErrAccess
	}
	return []byte("data"), nil
}

// The test of a suspended campaign reads its files, and continues or ends the suspension.
func TestTestOfSuspendedCampaign(t *testing.T) {
	t.Parallel()
	work, denied := &recordingWork{}, new(atomic.Bool)
	denied.Store(true)
	w := quietWorker(t, func(cfg *Config) { cfg.Work = work })
	task := breakerTask("a", "1")
	task.Item.Image = &item.Source{Path: "image.png"}
	task.assigned.Sources, task.assigned.loader.Sources = oneFile{denied}, oneFile{denied}
	for range guard.FailuresToSuspend {
		w.noteFailure(task, job.SourceError{Err: errItem})
	}
	work.calls = nil
	w.testCampaign(t.Context(), "a", w.breaker.Circuit("a"))
	if c := w.breaker.Circuit("a"); c == nil || len(work.calls) != 1 {
		t.Errorf("after a failed test: %+v, %q", c, work.calls)
	}
	denied.Store(false)
	w.testCampaign(t.Context(), "a", w.breaker.Circuit("a"))
	if c := w.breaker.Circuit("a"); c != nil || len(work.calls) != 1 {
		t.Errorf("after a passed test: %+v, %q", c, work.calls)
	}
}

// A report names the worker, the reason in one line, the time without success and the time of the report. A report that
// the queue does not take is a line in the log.
func TestReportOfFault(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	clock, log := newStoppedClock(), new(strings.Builder)
	w := quietWorker(t, logTo(log), func(cfg *Config) { cfg.Now, cfg.PauseAfter = clock.now, time.Minute })
	l := leaseNew(t, q, 1)[0]
	task := breakerTask("a", l.ID())
	task.lease = l
	w.noteFailure(task, errStore)
	clock.time = clock.time.Add(time.Minute)
	w.noteFailure(task, errItem) // says nothing about the environment
	w.noteFailure(task, errStore)
	if strings.Contains(log.String(), "could not report") {
		t.Errorf("log: %s", log)
	}
	clock.time = clock.time.Add(time.Minute)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.reportFault(ended, "", task, errStore)
	if !strings.Contains(log.String(), "could not report a failing environment") {
		t.Errorf("log: %s", log)
	}
	limited, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	for event, err := range q.Results(limited, 0) {
		must(t, err)
		var fault record.Fault
		if err := json.Unmarshal(event.Payload, &fault); err != nil || event.ID != record.IDFault {
			t.Fatalf("event %s: %v", event.ID, err)
		}
		want := record.Fault{Worker: "tester", Reason: oneLine(errStore), Seconds: 60, At: clock.time.Add(-time.Minute)}
		if fault != want {
			t.Errorf("the report is %+v, want %+v", fault, want)
		}
		break
	}
}
