package coordinator_test

import (
	"math"
	"testing"

	"ddiff/manifest"
)

// TestAbsurdNumbersInRecord: a record with absurd numbers must not stop the coordinator, which runs all other campaigns
// too. Users may write records.
func TestAbsurdNumbersInRecord(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	stop := tc.lead()
	id := tc.submit("absurd", math.MaxInt)
	tc.awaitPhase(id, manifest.PhasePreflight)
	stop()
	key := manifest.KeyCampaignPrefix + id
	data, _, err := tc.board.Get(t.Context(), key)
	must(t, err)
	with := func(items string) {
		t.Helper()
		must(t, tc.board.Put(t.Context(), key, append([]byte(`{"items":`+items+`,`), data[1:]...)))
	}
	with("-5")
	tc.lead()
	tc.work(id)
	other := tc.submit("other", 0)
	tc.work(other)
	tc.awaitPhase(other, manifest.PhaseFinished)
	with("9223372036854775807")
	if s := tc.awaitPhase(id, manifest.PhaseFinished); s.Status.Counts.Done != s.Status.Counts.Items {
		t.Errorf("counts %+v", s.Status.Counts)
	}
}
