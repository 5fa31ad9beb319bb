package lookup

import (
	"context"
	"errors"
	"testing"
)

// TestLeaving: a check that cannot be interrupted does not keep a process that was.
func TestLeaving(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	begun, block := make(chan struct{}), make(chan struct{})
	defer close(block)
	go func() {
		<-begun
		cancel()
	}()
	if err := leaving(ctx, func() error { close(begun); <-block; return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	failed := errors.New("damaged file")
	if err := leaving(t.Context(), func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}
