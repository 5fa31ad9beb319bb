package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
)

// A campaign that wants notifications is rejected where nothing may be sent, with the remedy.
func TestNotifyNotPermitted(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("night")
	spec.Notify = "https://hooks.example.org/campaigns"
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	defer tc.lead()()
	s := tc.awaitPhase(c.ID, record.PhaseRejected)
	if !strings.Contains(s.Campaign.Reason, "--notify-host") {
		t.Errorf("the reason is %q", s.Campaign.Reason)
	}
	if s.Campaign.Changes != 1 {
		t.Errorf("%d changes of the phase", s.Campaign.Changes)
	}
}
