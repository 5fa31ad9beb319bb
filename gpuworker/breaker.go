package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/restore/onnx/onnxruntime"
)

const (
	// failuresToSuspend is the number of failures in a row after which a worker tests its environment.
	failuresToSuspend = 3
	// maxFaults is the number of environment failures of an item after which it runs alone. If it then fails again, and
	// the worker's environment passes its test, the item is dead.
	maxFaults = 10
	// staleSuspension is how long a campaign counts as suspended after its test was due.
	staleSuspension = 5 * time.Minute
	// longestProbePause is the longest pause between two tests of an environment.
	longestProbePause = 30 * time.Second
)

// breaker suspends a worker whose items fail in a row: the worker leases nothing until its environment passes a test.
// Failures of a dataset's files suspend the worker from one campaign, if the dispatcher is a suspender.
type breaker struct {
	now   func() time.Time
	pause time.Duration // before the second test of a suspension

	mu       sync.Mutex
	stopped  bool
	circuits map[string]*circuit // by campaign; "" is the worker's
	good     *manifest.Item      // the last restored item
}

// circuit counts the failures in a row of a worker or of one campaign.
type circuit struct {
	failures int
	since    time.Time // of the first failure
	cause    error
	item     *task // the last failed item, with which the environment is tested
	open     bool
	retained bool // the item's engine
	tests    int  // since the last success
	passes   int  // passed tests since the last success
	due      time.Time
	reported time.Time
	delays   *backoff.ExponentialBackOff
}

func newBreaker(now func() time.Time, pause time.Duration) *breaker {
	return &breaker{now: now, pause: pause, circuits: map[string]*circuit{}}
}

// succeed records a restored item.
func (b *breaker) succeed(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := t.item // without the rest of the task
	b.good = &it
	for _, key := range []string{"", t.assigned.Campaign} {
		if c := b.circuits[key]; c != nil && !c.open { // only a test closes an open circuit
			delete(b.circuits, key)
		}
	}
}

// fail records a failed item, and reports whether it has opened the circuit.
func (b *breaker) fail(key string, t *task, err error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	c := b.circuits[key]
	if c == nil {
		c = &circuit{since: b.now(), delays: retry.NewBackOff(b.pause, max(b.pause, longestProbePause))}
		b.circuits[key] = c
	}
	c.failures++
	c.cause = err
	if c.failures < failuresToSuspend || c.open {
		return false
	}
	c.open, c.item = true, t.withoutImages()
	if key == "" {
		t.assigned.unsettled.Add(1) // the engine stays open for the test
		c.retained = true
	}
	c.due = b.now()
	if c.tests > 0 {
		c.due = c.due.Add(c.delays.NextBackOff())
	}
	return true
}

// withoutImages returns a copy of the task for tests of the environment.
func (t *task) withoutImages() *task {
	return &task{lease: t.lease, assigned: t.assigned, ctx: t.ctx, item: t.item, preflight: t.preflight, written: t.written}
}

// release ends the use of the circuit's item.
func (c *circuit) release() {
	if c.retained {
		c.item.assigned.settled()
	}
	c.item, c.retained = nil, false
}

// passed closes a circuit after a passed test. The next environment failure opens it again; disputes start to count from
// zero.
func (b *breaker) passed(c *circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.release()
	c.open, c.failures, c.tests, c.passes = false, 0, c.tests+1, c.passes+1
	if environmental(c.cause) {
		c.failures = failuresToSuspend - 1
	}
}

// failed records a failed test and returns the time of the next.
func (b *breaker) failed(c *circuit, err error) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := c.delays.NextBackOff()
	c.cause, c.tests, c.due = err, c.tests+1, b.now().Add(d)
	return d
}

// circuit returns the open circuit of a key, or nil.
func (b *breaker) circuit(key string) *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuits[key]; c != nil && c.open {
		return c
	}
	return nil
}

// suspension returns the reason of a suspension, and the campaign if it concerns only one. A campaign of which nothing
// was leased for long after its test was due, for example because it has ended, is not suspended.
func (b *breaker) suspension() (campaign, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.circuits)) { // the worker's first
		c := b.circuits[key]
		if c.open && (key == "" || b.now().Sub(c.due) < staleSuspension) {
			return key, oneLine(c.cause)
		}
	}
	return "", ""
}

// reportDue reports whether the failures of a key have lasted for a time and need a person, at most once in this time.
// Temporary failures need one if tests have passed meanwhile: then waiting does not help.
func (b *breaker) reportDue(key string, err error, after time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, now := b.circuits[key], b.now()
	if c == nil || (temporary(err) && c.passes == 0) || now.Sub(c.since) < after || now.Sub(c.reported) < after {
		return false
	}
	c.reported = now
	return true
}

// lastGood returns the last restored item of a campaign, or nil.
func (b *breaker) lastGood(campaign string) *manifest.Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.good != nil && b.good.Campaign == campaign {
		return b.good
	}
	return nil
}

// stop closes all circuits for good.
func (b *breaker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	for key, c := range b.circuits {
		c.release()
		delete(b.circuits, key)
	}
}

// suspender skips a campaign for a while.
type suspender interface {
	Suspend(campaign string, d time.Duration, reason error)
}

// noteFailure counts a failure of an item in the circuit that it concerns.
func (w *Worker) noteFailure(t *task, err error) {
	key := ""
	s, ok := w.cfg.Work.(suspender)
	if ok && fromSource(err) {
		key = t.assigned.Campaign
	}
	opened := w.breaker.fail(key, t, err)
	if environmental(err) {
		w.reportFault(t.ctx, key, t, err)
	}
	if !opened {
		return
	}
	w.cfg.Instruments.Suspensions.Add(t.ctx, 1)
	if key != "" {
		w.cfg.Logger.Error("suspended a campaign until its files can be read", "campaign", key, "failures", failuresToSuspend, "reason", err)
		s.Suspend(key, w.breaker.pause, err)
		return
	}
	w.cfg.Logger.Error("suspended leasing until the environment passes a test", "failures", failuresToSuspend, "reason", err)
}

// awaitEnvironment returns once the worker's environment works. It tests the environment of a suspended worker until it
// passes. An error ends the worker: the device is lost, or Config.Patience is over.
func (w *Worker) awaitEnvironment(ctx context.Context) error {
	for ctx.Err() == nil {
		c := w.breaker.circuit("")
		if c == nil {
			return nil
		}
		w.awaitSettled(ctx)                          // the test must not run beside the solver
		_ = retry.Sleep(ctx, c.due.Sub(w.cfg.Now())) // the loop and the test check ctx
		_, skips := w.cfg.Work.(suspender)
		err := w.test(ctx, c.item, !skips) // files of one campaign suspend that campaign only
		if err == nil {
			w.cfg.Logger.Info("the environment has passed its test, leasing again")
			w.breaker.passed(c)
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the worker drains
		}
		if errors.Is(err, onnxruntime.ErrDeviceLost) || errors.Is(err, onnxruntime.ErrFallback) {
			return fmt.Errorf("test the device: %w", err)
		}
		if p := w.cfg.Patience; p > 0 && (!temporary(err) || w.cfg.Now().Sub(c.since) >= p) {
			return fmt.Errorf("test the environment: %w", err)
		}
		w.reportFault(ctx, "", c.item, err)
		w.cfg.Logger.Warn("the environment fails its test", "again", w.breaker.failed(c, err), "reason", err)
	}
	return nil
}

// testCampaign tests the files of a suspended campaign. It ends the suspension, or continues it.
func (w *Worker) testCampaign(ctx context.Context, campaign string, c *circuit) {
	a := w.watchdog.begin(ctx, "probe", w.cfg.Limits.Prepare)
	defer a.end()
	err := a.wrap(w.testSources(a.ctx, c.item))
	if err == nil {
		w.cfg.Logger.Info("the files of a campaign can be read again", "campaign", campaign)
		w.breaker.passed(c)
		return
	}
	w.reportFault(ctx, campaign, c.item, err)
	w.cfg.Work.(suspender).Suspend(campaign, w.breaker.failed(c, err), err)
}

// reportFault reports an environment that has failed for Config.PauseAfter and needs a person. The coordinator pauses
// the campaign if no other worker has finished an item in this time.
func (w *Worker) reportFault(ctx context.Context, key string, t *task, err error) {
	if !w.breaker.reportDue(key, err, w.cfg.PauseAfter) {
		return
	}
	data, failed := json.Marshal(manifest.Fault{
		Worker: w.cfg.Name, Reason: oneLine(err), Seconds: w.cfg.PauseAfter.Seconds(), At: w.cfg.Now().UTC(),
	})
	if failed == nil {
		failed = t.lease.PublishNotice(ctx, manifest.IDFault, data)
	}
	if failed != nil {
		w.cfg.Logger.Warn("could not report a failing environment", "reason", failed)
	}
}
