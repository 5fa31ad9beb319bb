package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// A campaign that wants notifications is rejected where nothing may be sent, with the remedy.
func TestNotifyNotPermitted(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("night")
	spec.Notify = "https://hooks.example.org/campaigns"
	c, _, err := board.Submit(t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(t, err)
	defer tc.lead()()
	s := tc.awaitPhase(c.ID, manifest.PhaseRejected)
	if !strings.Contains(s.Campaign.Reason, "--notify-host") {
		t.Errorf("the reason is %q", s.Campaign.Reason)
	}
	if s.Campaign.Changes != 1 {
		t.Errorf("%d changes of the phase", s.Campaign.Changes)
	}
}
