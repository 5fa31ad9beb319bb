package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"ddiff/internal/lifecycle"
	"ddiff/internal/lifecycle/lifecycletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loop is a service that runs until it is cancelled.
type loop struct{ service lifecycle.Service }

func (l *loop) Start(ctx context.Context) error {
	return l.service.Start(ctx, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return ctx.Err()
	})
}

func (l *loop) Stop() { l.service.Stop() }

func TestService(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func() lifecycletest.Service { return &loop{} })
}

func TestStopJoinsInEveryCaller(t *testing.T) {
	t.Parallel()
	var cause error
	var ended atomic.Bool
	s := lifecycle.Go(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		ended.Store(true)
		return ctx.Err()
	})
	if err := s.Err(); err != nil {
		t.Errorf("Err of a running service: %v", err)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			s.Stop()
			if !ended.Load() {
				t.Error("Stop returned before the service ended")
			}
		})
	}
	callers.Wait()
	if !errors.Is(cause, lifecycle.ErrStopped) {
		t.Errorf("cause %v, want %v", cause, lifecycle.ErrStopped)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop: %v, want nil", err)
	}
}

func TestStopOfNilService(*testing.T) {
	var s *lifecycle.Service
	s.Stop()
}

func TestStartReturnsErrorOfFailedStart(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var s lifecycle.Service
	for range 2 {
		err := s.Start(t.Context(), func(context.Context, func()) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("Start: %v, want %v", err, broken)
		}
	}
	s.Stop()
	if err := s.Err(); !errors.Is(err, broken) {
		t.Errorf("Err: %v, want %v", err, broken)
	}
}

func TestErrOfServiceThatFailsLater(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := lifecycle.Go(t.Context(), func(context.Context) error { return broken })
	<-s.Done()
	s.Stop()
	if err := s.Err(); !errors.Is(err, broken) {
		t.Errorf("Err: %v, want %v", err, broken)
	}
}

func TestServiceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := lifecycle.Go(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	cancel(left)
	<-s.Done()
	s.Stop()
	if err := s.Err(); !errors.Is(err, left) {
		t.Errorf("Err: %v, want %v", err, left)
	}
}
