package archive

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answering returns an archiver that executes each request by a function, and a request.
func answering(execute func() error) (*Archiver, []byte) {
	a := &Archiver{cfg: Config{Logger: slog.New(slog.DiscardHandler)}, execute: func(context.Context, *request) error { return execute() }}
	return a, []byte(`{"id":"one","verb":"recall"}`)
}

// TestRepeatedRequest: a request that is sent again while the leader executes it is executed once, and both have the answer.
func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, gate := 0, make(chan struct{})
		a, r := answering(func() error {
			calls++
			<-gate
			return nil
		})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if got := string(a.Answer(t.Context(), r)); got != "{}" {
					t.Errorf("answer %q", got)
				}
			})
		}
		synctest.Wait()
		close(gate)
		if both.Wait(); calls != 1 {
			t.Errorf("executed %d times", calls)
		}
	})
}

// TestFailedRequest: a leader tries a request again after an error, for half a minute, and then is silent.
func TestFailedRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		errors int
		want   string
		after  time.Duration
	}{
		"at once":         {0, "{}", 0},
		"at the third":    {2, "{}", 2 * answerPause},
		"when none waits": {1 << 30, "", requestLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, left := time.Now(), tt.errors
			a, r := answering(func() error {
				if left--; left >= 0 {
					return errors.New("the store is away")
				}
				return nil
			})
			if got := string(a.Answer(t.Context(), r)); got != tt.want || time.Since(begin) != tt.after {
				t.Errorf("%s: %q after %v", name, got, time.Since(begin))
			}
		})
	}
}

// TestBadRequests: an unknown request is refused, and what is no request has no answer.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	a := &Archiver{}
	a.execute = a.executeOnce
	if got := a.Answer(t.Context(), []byte("garbage")); got != nil {
		t.Errorf("garbage: %q", got)
	}
	if got := string(a.Answer(t.Context(), []byte(`{"id":"1","verb":"drop"}`))); !strings.Contains(got, `unknown request \"drop\"`) {
		t.Errorf("unknown: %q", got)
	}
}
