package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"ddiff/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
