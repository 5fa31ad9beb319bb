// Package lifecycle runs functions beside their caller: servers, watchers, loops.
package lifecycle

import (
	"context"
	"errors"
)

// ErrStopped is the cause with which Stop cancels the context of a service.
var ErrStopped = errors.New("service is stopped")

// Service is a function in a goroutine. All methods may be called concurrently.
type Service struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the function has returned
	err    error         // of the function; valid when done is closed
}

// Go calls run in a goroutine. The context of run ends with ctx, and with the cause ErrStopped by Stop, which the caller must call. A service
// that must outlive ctx, to drain, gets [context.WithoutCancel] of it.
func Go(ctx context.Context, run func(ctx context.Context) error) *Service {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Service{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer cancel(nil)
		err := run(ctx)
		if errors.Is(context.Cause(ctx), ErrStopped) && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped)) {
			err = nil
		}
		s.err = err
	}()
	return s
}

// Stop cancels the service and returns after its function has returned. It is idempotent; on a nil service it does nothing.
func (s *Service) Stop() {
	if s == nil {
		return
	}
	s.cancel(ErrStopped)
	<-s.done
}

// Done is closed when the service has ended.
func (s *Service) Done() <-chan struct{} { return s.done }

// Err is the error with which a service ended: nil before Done is closed, and after a cancellation by Stop.
func (s *Service) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
