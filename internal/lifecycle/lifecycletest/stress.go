// Package lifecycletest tests services against the contract of package lifecycle.
package lifecycletest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"ddiff/internal/lifecycle"
)

// Service is something that runs beside its caller.
type Service interface {
	Start(ctx context.Context) error
	Stop()
}

// Stress starts and stops services in every order that the contract allows. newService returns a new service, which
// must be able to start. Goroutines that outlive Stop are found by goleak in the TestMain of the calling package.
func Stress(t *testing.T, newService func() Service) {
	t.Helper()
	t.Run("stop before start", func(t *testing.T) {
		s := newService()
		s.Stop()
		s.Stop()
		if err := s.Start(t.Context()); !errors.Is(err, lifecycle.ErrStopped) {
			t.Errorf("Start after Stop: %v, want %v", err, lifecycle.ErrStopped)
		}
	})
	t.Run("double start, double stop", func(t *testing.T) {
		s := newService()
		for range 2 {
			if err := s.Start(t.Context()); err != nil {
				t.Fatalf("Start: %v", err)
			}
		}
		s.Stop()
		s.Stop()
		if err := s.Start(t.Context()); !errors.Is(err, lifecycle.ErrStopped) {
			t.Errorf("Start after Stop: %v, want %v", err, lifecycle.ErrStopped)
		}
	})
	t.Run("context has ended", func(t *testing.T) {
		s := newService()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Start(ctx) // nil or an error: the service may notice before or after it is ready
		s.Stop()
	})
	t.Run("concurrent calls", func(t *testing.T) {
		for range 20 {
			s := newService()
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					if err := s.Start(t.Context()); err != nil && !errors.Is(err, lifecycle.ErrStopped) {
						t.Errorf("Start: %v, want nil or %v", err, lifecycle.ErrStopped)
					}
				})
				calls.Go(s.Stop)
			}
			calls.Wait()
		}
	})
}
