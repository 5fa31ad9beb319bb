package testbed

import (
	"io"
	"testing"
	"time"
)

// TestLeaderTakeover expects a takeover after ten thousand outcomes within a minute.
func TestLeaderTakeover(t *testing.T) {
	o := quick(scaleOptions{keep: t.TempDir(), out: io.Discard, servers: 1})
	var err error
	o.program, err = BuildProgram(t.Context(), o.keep)
	must(t, err)
	var took time.Duration
	func() {
		defer caught(&err)
		took = leaderTakeover(t.Context(), o, o.keep)
	}()
	if err != nil || took > time.Minute {
		t.Errorf("took %v: %v", took, err)
	}
	t.Logf("takeover_s=%.1f", took.Seconds())
}
