package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/storage"
)

// stoppedClock is a clock that only the test moves.
type stoppedClock struct{ time time.Time }

func (c *stoppedClock) now() time.Time { return c.time }

func newStoppedClock() *stoppedClock {
	return &stoppedClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// breakerTask is a task of a campaign.
func breakerTask(campaign, item string) *task {
	a := newAssigned(Assignment{Campaign: campaign}, 1, nil, 0)
	return &task{assigned: a, item: manifest.Item{ID: item, Campaign: campaign}, ctx: context.Background(), written: 7}
}

var (
	errItem  = errors.New("the item is bad")
	errStore = fmt.Errorf("put:\n%w", storage.ErrReadOnly)
)

// The third failure in a row opens a circuit; a success in between starts the count again, but does not close it.
func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	for _, key := range []string{"", "a"} {
		b, task := newBreaker(c.now, time.Second), breakerTask("a", "1")
		task.applied = []float32{1}
		fail := func(want bool) {
			t.Helper()
			if got := b.fail(key, task, errItem); got != want {
				t.Errorf("circuit %q: opened is %v, want %v", key, got, want)
			}
			if open := b.circuit(key) != nil; open != want {
				t.Errorf("circuit %q: open is %v, want %v", key, open, want)
			}
		}
		fail(false)
		fail(false)
		b.succeed(task)
		fail(false)
		fail(false)
		fail(true)
		if b.fail(key, task, errItem) {
			t.Error("an open circuit opened again")
		}
		circuit := b.circuit(key)
		if circuit == nil || circuit.failures != 4 || !circuit.due.Equal(c.time) || circuit.item == task || circuit.item.item.ID != "1" || circuit.item.written != 7 ||
			circuit.item.applied != nil {
			t.Fatalf("circuit %q is %+v", key, circuit)
		}
		want := int32(1)
		if key == "" {
			want = 2 // the engine stays open
		}
		if n := task.assigned.unsettled.Load(); n != want {
			t.Errorf("circuit %q: %d unsettled items, want %d", key, n, want)
		}
		b.succeed(task)
		if b.circuit(key) == nil {
			t.Error("a success closed an open circuit")
		}
		b.stop()
		if b.circuit(key) != nil || task.assigned.unsettled.Load() != 1 {
			t.Error("stop left an open circuit or a retained engine")
		}
		for range failuresToSuspend {
			fail(false)
		}
	}
}

// After a passed test, one failure of the environment opens the circuit again, with a pause; others need three.
func TestBreakerAfterPassedTest(t *testing.T) {
	t.Parallel()
	for reason, failures := range map[error]int{errStore: 1, errItem: failuresToSuspend} {
		c := newStoppedClock()
		b, task := newBreaker(c.now, time.Second), breakerTask("a", "1")
		for range failuresToSuspend {
			b.fail("", task, reason)
		}
		first := b.circuit("")
		for pass := range 3 {
			b.passed(first)
			if b.circuit("") != nil || first.passes != pass+1 || first.tests != pass+1 || first.item != nil || first.retained || task.assigned.unsettled.Load() != 1 {
				t.Fatalf("%v: after a passed test: %+v", reason, first)
			}
			for n := 1; n <= failures; n++ {
				if opened := b.fail("", task, reason); opened != (n == failures) {
					t.Errorf("%v: failure %d opened the circuit: %v", reason, n, opened)
				}
			}
			least := time.Second << pass / 2
			if pause := first.due.Sub(c.time); pause < least || pause > 2*least {
				t.Errorf("%v: the pause after test %d is %v, want %v to %v", reason, pass+1, pause, least, 2*least)
			}
		}
	}
}

// The pause after a failed test doubles, up to half a minute.
func TestBreakerPausesBetweenFailedTests(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b := newBreaker(c.now, time.Second)
	for range failuresToSuspend {
		b.fail("", breakerTask("a", "1"), errItem)
	}
	circuit := b.circuit("")
	for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		c.time = c.time.Add(time.Hour)
		most := time.Duration(seconds) * time.Second
		pause := b.failed(circuit, errStore)
		if pause < most/2 || pause > most || !circuit.due.Equal(c.time.Add(pause)) || circuit.tests != i+1 || !errors.Is(circuit.cause, storage.ErrReadOnly) {
			t.Errorf("test %d: pause %v, want %v to %v; %+v", i+1, pause, most/2, most, circuit)
		}
	}
}

// A campaign whose test is long overdue is not suspended; a worker is.
func TestBreakerSuspension(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b := newBreaker(c.now, time.Second)
	want := func(campaign, reason string) {
		t.Helper()
		if gotCampaign, got := b.suspension(); gotCampaign != campaign || got != reason {
			t.Errorf("suspended: %q, %q; want %q, %q", gotCampaign, got, campaign, reason)
		}
	}
	fail := func(key string, err error) {
		for range failuresToSuspend {
			want, got := b.circuit(key) != nil, b.fail(key, breakerTask("a", "1"), err)
			if want && got {
				t.Errorf("circuit %q opened twice", key)
			}
		}
	}
	b.fail("a", breakerTask("a", "1"), errItem)
	want("", "")
	fail("a", errStore)
	want("a", strings.Join(strings.Fields(errStore.Error()), " "))
	c.time = c.time.Add(staleSuspension - 1)
	want("a", strings.Join(strings.Fields(errStore.Error()), " "))
	c.time = c.time.Add(1)
	want("", "")
	fail("", errItem)
	c.time = c.time.Add(time.Hour)
	want("", errItem.Error())
}

// Failures are reported once in a time; temporary ones only after tests have passed.
func TestBreakerReportsLastingFaults(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b, lasting, brief := newBreaker(c.now, time.Second), errStore, storage.ErrUnavailable
	due := func(err error, want bool) {
		t.Helper()
		if got := b.reportDue("a", err, time.Minute); got != want {
			t.Errorf("the report of %v is due: %v, want %v", err, got, want)
		}
	}
	due(lasting, false) // nothing has failed
	b.fail("a", breakerTask("a", "1"), lasting)
	due(lasting, false)
	c.time = c.time.Add(time.Minute - 1)
	due(lasting, false)
	c.time = c.time.Add(1)
	due(brief, false)
	due(lasting, true)
	due(lasting, false)
	c.time = c.time.Add(time.Minute - 1)
	due(lasting, false)
	c.time = c.time.Add(1)
	due(lasting, true)
	b.fail("a", breakerTask("a", "1"), brief)
	b.fail("a", breakerTask("a", "1"), brief)
	c.time = c.time.Add(time.Minute)
	due(brief, false)
	b.passed(b.circuit("a"))
	due(brief, true)
}

func TestBreakerLastGood(t *testing.T) {
	t.Parallel()
	b := newBreaker(time.Now, time.Second)
	if it := b.lastGood("a"); it != nil {
		t.Errorf("item %v without a success", it)
	}
	b.succeed(breakerTask("a", "1"))
	b.succeed(breakerTask("a", "2"))
	if it := b.lastGood("a"); it == nil || it.ID != "2" {
		t.Errorf("the last good item is %v", it)
	}
	if it := b.lastGood("b"); it != nil {
		t.Errorf("item %v of another campaign", it)
	}
}

// Unreadable files suspend their campaign if the dispatcher can skip it. All other failures suspend the worker.
func TestFailuresSuspendWorkerOrCampaign(t *testing.T) {
	t.Parallel()
	file := sourceError{errItem}
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
		for range failuresToSuspend {
			if w.breaker.circuit(c.key) != nil {
				t.Errorf("%s: opened early", c.name)
			}
			w.noteFailure(task, c.err)
		}
		if w.breaker.circuit(c.key) == nil {
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

func (p *probing) probe(context.Context, *task, *manifest.Item) error {
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
			for range failuresToSuspend {
				w.noteFailure(task, errItem)
			}
			w.breaker.circuit("").since = clock.time.Add(-c.waited)
			if err := w.awaitEnvironment(t.Context()); !errors.Is(err, c.want) || p.calls != c.calls {
				t.Errorf("%v after %d tests, want %v after %d", err, p.calls, c.want, c.calls)
			}
			if open := w.breaker.circuit("") != nil; open != (c.want != nil) {
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
	for range failuresToSuspend {
		w.noteFailure(task, errItem)
	}
	if err := w.awaitEnvironment(ctx); err != nil {
		t.Errorf("error %v", err)
	}
	if w.breaker.circuit("") == nil {
		t.Error("the circuit closed without a passed test")
	}
}

// drainingProbe loses the device while the worker begins to drain.
type drainingProbe struct {
	restorer
	drain func()
}

func (d drainingProbe) probe(context.Context, *task, *manifest.Item) error {
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
	task.item.Image = &manifest.Source{Path: "image.png"}
	task.assigned.Sources, task.assigned.sources = oneFile{denied}, oneFile{denied}
	for range failuresToSuspend {
		w.noteFailure(task, sourceError{errItem})
	}
	work.calls = nil
	w.testCampaign(t.Context(), "a", w.breaker.circuit("a"))
	if c := w.breaker.circuit("a"); c == nil || c.tests != 1 || !errors.Is(c.cause, storage.ErrAccess) || len(work.calls) != 1 {
		t.Errorf("after a failed test: %+v, %q", c, work.calls)
	}
	denied.Store(false)
	w.testCampaign(t.Context(), "a", w.breaker.circuit("a"))
	if c := w.breaker.circuit("a"); c != nil || len(work.calls) != 1 {
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
		var fault manifest.Fault
		if err := json.Unmarshal(event.Payload, &fault); err != nil || event.ID != manifest.IDFault {
			t.Fatalf("event %s: %v", event.ID, err)
		}
		want := manifest.Fault{Worker: "tester", Reason: oneLine(errStore), Seconds: 60, At: clock.time.Add(-time.Minute)}
		if fault != want {
			t.Errorf("the report is %+v, want %+v", fault, want)
		}
		break
	}
}

// Failures of the environment are named by errors of the store, the runtime and the system.
func TestClassesOfEnvironmentErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                      error
		environmental, temporary bool
	}{
		{errItem, false, false},
		{errStore, true, false},
		{storage.ErrUnavailable, true, true},
		{fmt.Errorf("solve: %w", onnxruntime.ErrMemory), true, true},
		{onnxruntime.ErrDeviceLost, true, false},
		{timeoutError(true), true, true},
		{timeoutError(false), false, false},
	} {
		if got := environmental(c.err); got != c.environmental {
			t.Errorf("%v: environmental is %v", c.err, got)
		}
		if got := temporary(c.err); got != c.temporary {
			t.Errorf("%v: temporary is %v", c.err, got)
		}
	}
	if !fromSource(fmt.Errorf("read: %w", sourceError{errItem})) || fromSource(errItem) || !errors.Is(sourceError{errItem}, errItem) {
		t.Error("errors of files are not told from others")
	}
}

// timeoutError is an error of the network, true after a timeout.
type timeoutError bool

func (e timeoutError) Error() string { return fmt.Sprintf("network error, timeout %v", bool(e)) }
func (e timeoutError) Timeout() bool { return bool(e) }
func (timeoutError) Temporary() bool { return false }

// A hang of a stage with other items may be theirs.
func TestHangInCompany(t *testing.T) {
	t.Parallel()
	var got []bool
	for items := range 4 {
		got = append(got, inCompany(fmt.Errorf("solve: %w", &hangError{items: items})))
	}
	if !slices.Equal(got, []bool{false, false, true, true}) || inCompany(ErrHung) {
		t.Errorf("in company: %v", got)
	}
	if !errors.Is(&hangError{}, ErrHung) || errors.Is(&hangError{}, ErrStuck) {
		t.Error("a hang is not ErrHung, or is ErrStuck")
	}
}
