package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker/tuner"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/storage"
)

func TestLimitsNameField(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]Limits{
		"Prepare": {Prepare: -1}, "Compile": {Compile: -1}, "Solve": {Solve: -1}, "Finish": {Finish: -1}, "Drain": {Drain: -1}, "Stop": {Stop: -1},
	} {
		if err := l.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Limits{}).Validate(); err != nil {
		t.Error(err)
	}
	l := Limits{}.WithDefaults()
	if l != (Limits{30 * time.Minute, 30 * time.Minute, 15 * time.Minute, 30 * time.Minute, 5 * time.Second, 10 * time.Second}) {
		t.Errorf("defaults %+v", l)
	}
	if set := (Limits{1, 2, 3, 4, 5, 6}); set.WithDefaults() != set {
		t.Errorf("%+v", set.WithDefaults())
	}
	if d := l.measure(); d != 150*time.Minute {
		t.Errorf("measuring may take %v", d)
	}
}

// The interval of the checks is a quarter of the least limit, from 1 ms to 1 s.
func TestIntervalOfChecks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits Limits
		want   time.Duration
	}{
		{Limits{}, time.Second},
		{Limits{Prepare: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Compile: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Solve: 4 * time.Second}, 100 * time.Millisecond},
		{Limits{Finish: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Drain: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Stop: 400 * time.Millisecond}, 100 * time.Millisecond},
		{Limits{Stop: time.Millisecond}, time.Millisecond},
	} {
		d, _ := newTestDog()
		if d.limits = tt.limits.WithDefaults(); d.interval() != tt.want {
			t.Errorf("%+v: interval %v, want %v", tt.limits, d.interval(), tt.want)
		}
	}
}

// A stage that exceeded its limit counts as an attempt at its items; active counts all stages.
func TestHungStages(t *testing.T) {
	t.Parallel()
	d, drains := newTestDog()
	if d.active() || d.failure() != nil {
		t.Error("a stage without a begin")
	}
	in := newAssigned(Assignment{}, 2, nil, 0)
	items := []*task{{lease: &queue.Lease{}, assigned: in, ctx: t.Context()}, {lease: &queue.Lease{}, assigned: in, ctx: t.Context()}}
	a, b := d.begin(t.Context(), "solve", time.Minute, items...), d.begin(t.Context(), "write", time.Minute+1)
	if !d.active() || len(d.hung()) != 0 {
		t.Errorf("%d items hung", len(d.hung()))
	}
	if d.check(time.Minute - 1); len(d.hung()) != 0 || a.ctx.Err() != nil {
		t.Error("a stage hung before its limit")
	}
	d.check(1)
	if hung := d.hung(); len(hung) != 2 || !errors.Is(hung[items[1]], ErrHung) || !inCompany(hung[items[0]]) || *drains != 1 {
		t.Errorf("hung: %v", hung)
	}
	d.check(1)
	if b.ctx.Err() == nil || *drains != 1 || !errors.Is(b.wrap(context.Canceled), ErrHung) || inCompany(b.wrap(context.Canceled)) {
		t.Errorf("another stage: %v, %d drains", b.ctx.Err(), *drains)
	}
	if !strings.Contains(d.failure().Error(), "stage solve") {
		t.Errorf("the first is %v", d.failure())
	}
	a.ignored, b.ignored = 0, -time.Hour
	if d.check(d.limits.Stop - 1); isClosed(d.stuck) {
		t.Error("stuck before the limit")
	}
	d.check(1)
	if d.check(time.Second); !isClosed(d.stuck) {
		t.Error("not stuck")
	}
	a.end()
	if !d.active() || len(d.hung()) != 0 {
		t.Error("the stage without items has ended")
	}
	if b.end(); d.active() {
		t.Error("an ended stage is active")
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The time to drain counts from the begin of draining.
func TestDrainInterruptsLate(t *testing.T) {
	t.Parallel()
	d, _ := newTestDog()
	a := d.begin(t.Context(), "solve", time.Hour)
	defer a.end()
	a.next("solve", time.Hour, true)
	d.check(d.limits.Drain)
	if d.setDraining(); a.ctx.Err() != nil {
		t.Error("a worker that does not drain interrupts a chunk")
	}
	if d.check(d.limits.Drain - 1); a.ctx.Err() != nil {
		t.Error("interrupted too early")
	}
	if d.check(1); a.ctx.Err() == nil || d.failure() != nil {
		t.Errorf("not interrupted, or hung: %v", d.failure())
	}
}

type leases func(n int, wait time.Duration) ([]*queue.Lease, error)

func (l leases) Lease(_ context.Context, n int, wait time.Duration) ([]*queue.Lease, error) {
	return l(n, wait)
}

func TestSingle(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	var n int
	var waited time.Duration
	q := leases(func(size int, wait time.Duration) ([]*queue.Lease, error) {
		n, waited = size, wait
		return make([]*queue.Lease, size), nil
	})
	s := Single{Queue: q, Items: Assignment{Store: dir, Sources: manifest.Files{}, Engine: &restore.Engine{}}}
	for want, change := range map[string]func(*Single){
		"Queue is missing": func(s *Single) { s.Queue = nil }, "Store is missing": func(s *Single) { s.Items.Store = nil },
		"Sources is missing": func(s *Single) { s.Items.Sources = nil }, "Engine is missing": func(s *Single) { s.Items.Engine = nil },
		"Batch: -1 is outside 0..1024": func(s *Single) { s.Items.Batch = -1 }, "Batch: 1025 is outside 0..1024": func(s *Single) { s.Items.Batch = 1025 },
	} {
		bad := s
		if change(&bad); bad.Validate() == nil || bad.Validate().Error() != want {
			t.Errorf("%v, want %s", bad.Validate(), want)
		}
	}
	for batch, want := range map[int]int{0: DefaultBatch, 1: 1, tuner.MaxBatch: tuner.MaxBatch} {
		if s.Items.Batch = batch; s.Validate() != nil {
			t.Errorf("batch %d: %v", batch, s.Validate())
		}
		a, all, err := s.Next(t.Context(), time.Minute)
		if err != nil || n != want || len(all) != want || a.Batch != want || waited != leaseSlice {
			t.Errorf("batch %d: %d items within %v, %v", batch, n, waited, err)
		}
	}
	if _, _, err := s.Next(t.Context(), 1); err != nil || waited != 1 {
		t.Errorf("waited %v", waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n = 0
	if _, _, err := s.Next(ctx, time.Minute); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("a draining worker leases %d items: %v", n, err)
	}
}

// The error of a stage decides what happens to an item. Of several causes the first in this order counts.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	running := func() *task { return &task{assigned: newAssigned(Assignment{}, 1, nil, 0)} }
	dropped := &task{assigned: newAssigned(Assignment{Lifetime: ended}, 1, nil, 0)}
	refusing := &task{assigned: newAssigned(Assignment{Refuse: func(error) {}}, 1, nil, 0)}
	other := errors.New("other")
	for i, tt := range []struct {
		ctx  context.Context
		t    *task
		err  error
		want kind
	}{
		{ended, dropped, nil, done},
		{ended, dropped, ErrHung, cancelled},
		{ended, running(), &hangError{}, retried},
		{ended, running(), context.Canceled, released},
		{ended, running(), other, retried},
		{t.Context(), running(), context.Canceled, retried},
		{t.Context(), refusing, ErrUnsupported, refused},
		{t.Context(), running(), ErrUnsupported, failed},
		{t.Context(), running(), errSuspended, suspended},
		{t.Context(), running(), errDigest, disputed},
		{t.Context(), running(), solver.ErrDiverged, disputed},
		{t.Context(), running(), raster.ErrNotFinite, disputed},
		{t.Context(), running(), raster.ErrBudget, disputed},
		{t.Context(), running(), errMemory, disputed},
		{t.Context(), running(), storage.ErrUnavailable, faulted},
		{t.Context(), running(), onnxruntime.ErrMemory, faulted},
		{t.Context(), running(), sourceError{storage.ErrUnavailable}, faulted},
		{t.Context(), running(), sourceError{other}, disputed},
		{t.Context(), running(), ErrInput, failed},
		{t.Context(), running(), other, retried},
	} {
		if tt.err != nil {
			tt.err = fmt.Errorf("wrapped: %w", tt.err)
		}
		if o := outcomeOf(tt.ctx, tt.t, tt.err); o.kind != tt.want || !errors.Is(o.err, tt.err) {
			t.Errorf("%d: %v is %d, want %d", i, tt.err, o.kind, tt.want)
		}
	}
	for _, err := range []error{
		ErrInput, ErrUnsupported, errMemory, raster.ErrFormat, raster.ErrTruncated, raster.ErrTooLarge, raster.ErrBudget, raster.ErrShape,
		raster.ErrNotFinite, operator.ErrTask, operator.ErrParam, operator.ErrShape, method.ErrSetting, solver.ErrConfig, solver.ErrDiverged,
	} {
		if !inputFailure(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%v is no failure of the input", err)
		}
	}
	if inputFailure(other) {
		t.Error("another error is a failure of the input")
	}
}
