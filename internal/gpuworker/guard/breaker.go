package guard

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ddiff/internal/retry"
	"ddiff/restore/item"
)

const (
	// FailuresToSuspend is the number of failures in a row after which a worker tests its environment.
	FailuresToSuspend = 3
	// staleSuspension is how long a campaign counts as suspended after its test was due.
	staleSuspension = 5 * time.Minute
	// longestProbePause is the longest pause between two tests of an environment.
	longestProbePause = 30 * time.Second
)

// Breaker suspends a worker whose items fail in a row: the worker leases nothing until its environment passes a test.
// Failures of a dataset's files suspend the worker from one campaign, if the worker can skip it.
type Breaker[T any] struct {
	now   func() time.Time
	pause time.Duration // before the second test of a suspension

	mu       sync.Mutex
	stopped  bool
	circuits map[string]*Circuit[T] // by campaign; "" is the worker's
	good     *item.Item             // the last restored item
}

// Circuit counts the failures in a row of a worker or of one campaign.
type Circuit[T any] struct {
	// Since is the time of the first failure, Due that of the next test.
	Since, Due time.Time
	// Item is the last failed item, with which the environment is tested.
	Item T

	release  func() // of Item
	failures int
	cause    error
	open     bool
	tests    int // since the last success
	passes   int // passed tests since the last success
	reported time.Time
	delays   *backoff.ExponentialBackOff
}

// NewBreaker returns a breaker without failures. The first pause between two tests is pause.
func NewBreaker[T any](now func() time.Time, pause time.Duration) *Breaker[T] {
	return &Breaker[T]{now: now, pause: pause, circuits: map[string]*Circuit[T]{}}
}

// Succeed records a restored item of a campaign.
func (b *Breaker[T]) Succeed(campaign string, it item.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.good = &it
	for _, key := range []string{"", campaign} {
		if c := b.circuits[key]; c != nil && !c.open { // only a test closes an open circuit
			delete(b.circuits, key)
		}
	}
}

// Fail records a failure, and reports whether it has opened the circuit of a key. Only then it calls hold, for the item of the tests and
// the end of its use.
func (b *Breaker[T]) Fail(key string, err error, hold func() (item T, release func())) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	c := b.circuits[key]
	if c == nil {
		c = &Circuit[T]{Since: b.now(), delays: retry.NewBackOff(b.pause, max(b.pause, longestProbePause))}
		b.circuits[key] = c
	}
	c.failures++
	c.cause = err
	if c.failures < FailuresToSuspend || c.open {
		return false
	}
	c.open, c.Due = true, b.now()
	c.Item, c.release = hold()
	if c.tests > 0 {
		c.Due = c.Due.Add(c.delays.NextBackOff())
	}
	return true
}

// end ends the use of the circuit's item.
func (c *Circuit[T]) end() {
	if c.release != nil {
		c.release()
	}
	var none T
	c.Item, c.release = none, nil
}

// Passed closes a circuit after a passed test. The next environment failure opens it again; disputes start to count from
// zero.
func (b *Breaker[T]) Passed(c *Circuit[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.end()
	c.open, c.failures, c.tests, c.passes = false, 0, c.tests+1, c.passes+1
	if Environmental(c.cause) {
		c.failures = FailuresToSuspend - 1
	}
}

// Failed records a failed test and returns the time of the next.
func (b *Breaker[T]) Failed(c *Circuit[T], err error) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := c.delays.NextBackOff()
	c.cause, c.tests, c.Due = err, c.tests+1, b.now().Add(d)
	return d
}

// Circuit returns the open circuit of a key, or nil.
func (b *Breaker[T]) Circuit(key string) *Circuit[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.circuits[key]; c != nil && c.open {
		return c
	}
	return nil
}

// Suspension returns the cause of a suspension, or nil, and the campaign if it concerns only one. A campaign of which nothing
// was leased for long after its test was due, for example because it has ended, is not suspended.
func (b *Breaker[T]) Suspension() (campaign string, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.circuits)) { // the worker's first
		c := b.circuits[key]
		if c.open && (key == "" || b.now().Sub(c.Due) < staleSuspension) {
			return key, c.cause
		}
	}
	return "", nil
}

// ReportDue reports whether the failures of a key have lasted for a time and need a person, at most once in this time.
// Temporary failures need one if tests have passed meanwhile: then waiting does not help.
func (b *Breaker[T]) ReportDue(key string, err error, after time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, now := b.circuits[key], b.now()
	if c == nil || (Temporary(err) && c.passes == 0) || now.Sub(c.Since) < after || now.Sub(c.reported) < after {
		return false
	}
	c.reported = now
	return true
}

// LastGood returns the last restored item of a campaign, or nil.
func (b *Breaker[T]) LastGood(campaign string) *item.Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.good != nil && b.good.Campaign == campaign {
		return b.good
	}
	return nil
}

// Stop closes all circuits for good.
func (b *Breaker[T]) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	for key, c := range b.circuits {
		c.end()
		delete(b.circuits, key)
	}
}
