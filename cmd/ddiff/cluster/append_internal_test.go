package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ddiff/api"
)

// A watch looks again, survives errors that may pass, and ends with its context or its campaign.
func TestLookAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := errors.New("the campaign still reads its dataset")
	looks, told := 0, []error{}
	look := func() error {
		switch looks++; looks {
		case 2:
			return busy
		case 3:
			cancel()
			return ctx.Err()
		}
		return nil
	}
	err := lookAgain(ctx, time.Nanosecond, look, func(err error) { told = append(told, err) })
	if !errors.Is(err, context.Canceled) || looks != 3 || !slices.Equal(told, []error{busy}) {
		t.Errorf("%d looks, told %v, %v", looks, told, err)
	}
	for name, c := range map[string]struct {
		every time.Duration
		errs  []error // of the looks
	}{"once": {0, []error{nil}}, "the first fails": {time.Hour, []error{busy}}, "deleted": {time.Nanosecond, []error{nil, busy, fmt.Errorf("%w", api.ErrNotFound)}}} {
		looks := 0
		err := lookAgain(t.Context(), c.every, func() error { looks++; return c.errs[looks-1] }, func(error) {})
		if last := c.errs[len(c.errs)-1]; looks != len(c.errs) || err != last { //nolint:errorlint // the same error
			t.Errorf("%s: %d looks, %v", name, looks, err)
		}
	}
}
