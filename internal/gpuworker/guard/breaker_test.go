package guard

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

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

var (
	errItem  = errors.New("the item is bad")
	errStore = fmt.Errorf("put:\n%w", storage.ErrReadOnly)
)

// nothing holds no item.
func nothing() (int, func()) { return 0, func() {} }

// The third failure in a row opens a circuit; a success in between starts the count again, but does not close it.
func TestBreakerOpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	for _, key := range []string{"", "a"} {
		b, held := NewBreaker[int](c.now, time.Second), 0
		hold := func() (int, func()) { held++; return 7, func() { held-- } }
		fail := func(want bool) {
			t.Helper()
			if got := b.Fail(key, errItem, hold); got != want {
				t.Errorf("circuit %q: opened is %v, want %v", key, got, want)
			}
			if open := b.Circuit(key) != nil; open != want {
				t.Errorf("circuit %q: open is %v, want %v", key, open, want)
			}
		}
		fail(false)
		fail(false)
		b.Succeed("a", item.Item{})
		fail(false)
		fail(false)
		fail(true)
		if b.Fail(key, errItem, hold) {
			t.Error("an open circuit opened again")
		}
		circuit := b.Circuit(key)
		if circuit == nil || circuit.failures != 4 || !circuit.Due.Equal(c.time) || circuit.Item != 7 || held != 1 {
			t.Fatalf("circuit %q is %+v", key, circuit)
		}
		b.Succeed("a", item.Item{})
		if b.Circuit(key) == nil {
			t.Error("a success closed an open circuit")
		}
		b.Stop()
		if b.Circuit(key) != nil || held != 0 {
			t.Error("stop left an open circuit or a held item")
		}
		for range FailuresToSuspend {
			fail(false)
		}
	}
}

// After a passed test, one failure of the environment opens the circuit again, with a pause; others need three.
func TestBreakerAfterPassedTest(t *testing.T) {
	t.Parallel()
	for reason, failures := range map[error]int{errStore: 1, errItem: FailuresToSuspend} {
		c := newStoppedClock()
		b, held := NewBreaker[int](c.now, time.Second), 0
		hold := func() (int, func()) { held++; return 7, func() { held-- } }
		for range FailuresToSuspend {
			b.Fail("", reason, hold)
		}
		first := b.Circuit("")
		for pass := range 3 {
			b.Passed(first)
			if b.Circuit("") != nil || first.passes != pass+1 || first.tests != pass+1 || first.Item != 0 || held != 0 {
				t.Fatalf("%v: after a passed test: %+v", reason, first)
			}
			for n := 1; n <= failures; n++ {
				if opened := b.Fail("", reason, hold); opened != (n == failures) {
					t.Errorf("%v: failure %d opened the circuit: %v", reason, n, opened)
				}
			}
			least := time.Second << pass / 2
			if pause := first.Due.Sub(c.time); pause < least || pause > 2*least {
				t.Errorf("%v: the pause after test %d is %v, want %v to %v", reason, pass+1, pause, least, 2*least)
			}
		}
	}
}

// The pause after a failed test doubles, up to half a minute.
func TestBreakerPausesBetweenFailedTests(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b := NewBreaker[int](c.now, time.Second)
	for range FailuresToSuspend {
		b.Fail("", errItem, nothing)
	}
	circuit := b.Circuit("")
	for i, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		c.time = c.time.Add(time.Hour)
		most := time.Duration(seconds) * time.Second
		pause := b.Failed(circuit, errStore)
		if pause < most/2 || pause > most || !circuit.Due.Equal(c.time.Add(pause)) || circuit.tests != i+1 || !errors.Is(circuit.cause, storage.ErrReadOnly) {
			t.Errorf("test %d: pause %v, want %v to %v; %+v", i+1, pause, most/2, most, circuit)
		}
	}
}

// A campaign whose test is long overdue is not suspended; a worker is.
func TestBreakerSuspension(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b := NewBreaker[int](c.now, time.Second)
	want := func(campaign string, reason error) {
		t.Helper()
		if gotCampaign, got := b.Suspension(); gotCampaign != campaign || !errors.Is(got, reason) {
			t.Errorf("suspended: %q, %v; want %q, %v", gotCampaign, got, campaign, reason)
		}
	}
	fail := func(key string, err error) {
		for range FailuresToSuspend {
			want, got := b.Circuit(key) != nil, b.Fail(key, err, nothing)
			if want && got {
				t.Errorf("circuit %q opened twice", key)
			}
		}
	}
	b.Fail("a", errItem, nothing)
	want("", nil)
	fail("a", errStore)
	want("a", errStore)
	c.time = c.time.Add(staleSuspension - 1)
	want("a", errStore)
	c.time = c.time.Add(1)
	want("", nil)
	fail("", errItem)
	c.time = c.time.Add(time.Hour)
	want("", errItem)
}

// Failures are reported once in a time; temporary ones only after tests have passed.
func TestBreakerReportsLastingFaults(t *testing.T) {
	t.Parallel()
	c := newStoppedClock()
	b, lasting, brief := NewBreaker[int](c.now, time.Second), errStore, storage.ErrUnavailable
	due := func(err error, want bool) {
		t.Helper()
		if got := b.ReportDue("a", err, time.Minute); got != want {
			t.Errorf("the report of %v is due: %v, want %v", err, got, want)
		}
	}
	due(lasting, false) // nothing has failed
	b.Fail("a", lasting, nothing)
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
	b.Fail("a", brief, nothing)
	b.Fail("a", brief, nothing)
	c.time = c.time.Add(time.Minute)
	due(brief, false)
	b.Passed(b.Circuit("a"))
	due(brief, true)
}

func TestBreakerLastGood(t *testing.T) {
	t.Parallel()
	b := NewBreaker[int](time.Now, time.Second)
	if it := b.LastGood("a"); it != nil {
		t.Errorf("item %v without a success", it)
	}
	b.Succeed("a", item.Item{ID: "1", Campaign: "a"})
	b.Succeed("a", item.Item{ID: "2", Campaign: "a"})
	if it := b.LastGood("a"); it == nil || it.ID != "2" {
		t.Errorf("the last good item is %v", it)
	}
	if it := b.LastGood("b"); it != nil {
		t.Errorf("item %v of another campaign", it)
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
		{onnxruntime.ErrDevice, true, false},
		{timeoutError(true), true, true},
		{timeoutError(false), false, false},
	} {
		if got := Environmental(c.err); got != c.environmental {
			t.Errorf("%v: environmental is %v", c.err, got)
		}
		if got := Temporary(c.err); got != c.temporary {
			t.Errorf("%v: temporary is %v", c.err, got)
		}
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
		got = append(got, InCompany(fmt.Errorf("solve: %w", &HangError{Items: items})))
	}
	if !slices.Equal(got, []bool{false, false, true, true}) || InCompany(ErrHung) {
		t.Errorf("in company: %v", got)
	}
	if !errors.Is(&HangError{}, ErrHung) || errors.Is(&HangError{}, ErrStuck) {
		t.Error("a hang is not ErrHung, or is ErrStuck")
	}
}
