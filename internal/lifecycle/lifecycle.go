// Package lifecycle is the contract of everything that runs beside its caller: servers, watchers, loops.
//
// A service has two methods. Start(ctx) returns nil once the service is running, or an error. Stop cancels the
// service and returns after its goroutines have ended. In detail:
//
//   - A service runs once. Start returns nil while the service runs, however often it is called; after Stop, Start
//     returns [ErrStopped].
//   - Stop is idempotent. It may be called before Start, concurrently with Start, and by several goroutines; each call
//     returns after the goroutines have ended.
//   - The service also ends when the context of Start ends. A service that must outlive that context, to drain, is
//     started with [context.WithoutCancel].
//   - The cause of the cancelled context is [ErrStopped] after Stop, and the parent's cause otherwise.
//
// [Service] implements the contract for one function. Package lifecycletest holds its conformance test.
package lifecycle

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped is the cause with which Stop cancels the context of a service, and the error of Start after Stop.
var ErrStopped = errors.New("service is stopped")

// Service runs one function in a goroutine. The zero value is ready to start. All methods may be called concurrently.
type Service struct {
	mu      sync.Mutex
	stopped bool                    // Stop was called
	cancel  context.CancelCauseFunc // nil before Start
	ready   chan struct{}           // closed when the service is running
	done    chan struct{}           // closed when the function has returned
	err     error                   // of the function; valid when done is closed
}

// Go starts run as a service that is ready at once. The caller must call Stop.
func Go(ctx context.Context, run func(ctx context.Context) error) *Service {
	s := &Service{}
	// Start fails only after Stop, or when run returns before it is ready.
	_ = s.Start(ctx, func(ctx context.Context, ready func()) error {
		ready()
		return run(ctx)
	})
	return s
}

// Start calls run in a goroutine and returns nil once run has called ready. When run returns without a call of ready,
// Start returns its error. run must return soon after its context has ended, and must not call Stop.
func (s *Service) Start(ctx context.Context, run func(ctx context.Context, ready func()) error) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return ErrStopped
	}
	if s.done == nil {
		ctx, s.cancel = context.WithCancelCause(ctx)
		s.ready, s.done = make(chan struct{}), make(chan struct{})
		go s.run(ctx, run)
	}
	s.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	case <-s.done:
	}
	select {
	case <-s.ready: // it was running, and has ended since
		return nil
	default:
	}
	if err := s.Err(); err != nil {
		return err
	}
	return ErrStopped
}

func (s *Service) run(ctx context.Context, run func(ctx context.Context, ready func()) error) {
	defer close(s.done)
	defer s.cancel(nil)
	err := run(ctx, sync.OnceFunc(func() { close(s.ready) }))
	if stopped := errors.Is(context.Cause(ctx), ErrStopped); stopped && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped)) {
		err = nil
	}
	s.err = err
}

// Stop cancels the service with the cause ErrStopped and returns after its function has returned. On a nil service it
// does nothing.
func (s *Service) Stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.stopped = true
	done := s.done
	if done != nil {
		s.cancel(ErrStopped)
	}
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Done is closed when a started service has ended. It is nil before Start.
func (s *Service) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// Err is the error with which a service ended: nil before Done is closed, and after a cancellation by Stop.
func (s *Service) Err() error {
	select {
	case <-s.Done():
		return s.err
	default:
		return nil
	}
}
