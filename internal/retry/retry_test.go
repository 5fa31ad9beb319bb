package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/internal/retry"
)

func TestBackOffDoublesAndIsRandom(t *testing.T) {
	t.Parallel()
	b := retry.NewBackOff(time.Second, 10*time.Second)
	for range 2 {
		for attempt, seconds := range []int{1, 2, 4, 8, 10, 10, 10} {
			full := time.Duration(seconds) * time.Second
			if d := b.NextBackOff(); d < full/2 || d > full {
				t.Errorf("delay %d is %v, want %v to %v", attempt+1, d, full/2, full)
			}
		}
		b.Reset()
	}
	seen := map[time.Duration]bool{}
	for range 100 {
		b.Reset()
		seen[b.NextBackOff()] = true
	}
	if len(seen) < 90 {
		t.Errorf("100 first delays have %d values, want random ones", len(seen))
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := retry.Sleep(t.Context(), time.Hour); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("Sleep: %v after %v, want nil after 1h", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := retry.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour+time.Minute {
			t.Errorf("Sleep: %v after %v, want %v after 1h1m", err, time.Since(begin), context.DeadlineExceeded)
		}
	})
}
