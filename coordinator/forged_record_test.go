package coordinator_test

import (
	"strings"
	"testing"

	"ddiff/coordinator"
	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// forged is an answer of the JetStream API, with which a user of a server with one account for all roles can replace records.
const forged = `{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"storage":0,"streams":5,"consumers":1}`

// TestForgedRecordIsRestored replaces records of a running campaign. The list and the status name the damaged ones, the leader
// restores the campaign, and the campaign can be cancelled or finishes.
func TestForgedRecordIsRestored(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	stop := tc.lead()
	id, cancelled := tc.submit("forged", 1), tc.submit("cancelled", 1)
	tc.awaitPhase(id, manifest.PhasePreflight)
	tc.awaitPhase(cancelled, manifest.PhasePreflight)
	stop()
	data, _, err := tc.board.Get(t.Context(), manifest.KeyCluster)
	must(t, err)
	cluster, err := manifest.DecodeCluster(data)
	must(t, err)
	forge := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			must(t, tc.board.Put(t.Context(), key, []byte(forged)))
		}
	}
	forge(manifest.KeyStatusPrefix+id, manifest.KeyWorkerPrefix+"w", manifest.KeyCoordinatorPrefix+"c", manifest.KeyCluster)
	s, err := board.Status(t.Context(), tc.board, id)
	must(t, err)
	if want := "the record status." + id + " cannot be read"; s.Campaign.ID != id || !strings.HasPrefix(s.Status.Problem, want) {
		t.Errorf("status %+v, want the problem %q", s, want)
	}
	if beats, skipped, err := board.Workers(t.Context(), tc.board); err != nil || len(beats) != 0 || len(skipped) != 1 {
		t.Errorf("workers %v, skipped %v, error %v", beats, skipped, err)
	}
	forge(manifest.KeyCampaignPrefix+id, manifest.KeyCampaignPrefix+cancelled)
	_, skipped, err := board.Campaigns(t.Context(), tc.board)
	if err != nil || len(skipped) != 2 || !strings.Contains(skipped[0].Error()+skipped[1].Error(), id) {
		t.Errorf("skipped %v, error %v", skipped, err)
	}

	tc.leadWith(func(c *coordinator.Config) { c.TakeOver = cluster.ID })
	for _, key := range []string{id, cancelled} {
		for change, err := range tc.board.Watch(t.Context(), manifest.KeyCampaignPrefix+key) {
			must(t, err)
			if strings.Contains(string(change.Data), `"spec"`) {
				break
			}
		}
	}
	_, err = board.Want(t.Context(), tc.board, cancelled, manifest.WantCancelNow)
	must(t, err)
	tc.awaitPhase(cancelled, manifest.PhaseCancelled)
	tc.work(id)
	tc.awaitDone(id, 4)
}

// TestRecordKeepsOutputAndPrior changes the output and the prior of a campaign that runs, as the credentials of users permit. The
// leader keeps both.
func TestRecordKeepsOutputAndPrior(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.lead()
	id, victim := tc.submit("attacker", 0), tc.submit("victim", 0)
	before := tc.awaitPhase(id, manifest.PhasePreflight).Campaign
	_, err := board.Update(t.Context(), tc.board, id, func(c *manifest.Campaign) error {
		c.Output, c.Prior.Key, c.Wanted = victim, "priors/other.onnx", manifest.WantPause
		return nil
	})
	must(t, err)
	after := tc.awaitPhase(id, manifest.PhasePaused).Campaign
	if after.Output != before.Output || after.Prior != before.Prior {
		t.Errorf("output %q and prior %v, want %q and %v", after.Output, after.Prior, before.Output, before.Prior)
	}
	for _, output := range []string{"priors", "priors/x", "campaigns/" + victim, ".ddiff/x"} {
		c, _, err := board.Submit(t.Context(), tc.board, tc.spec("in "+output), board.Order{Output: output}, after.Submitted)
		must(t, err)
		if s := tc.awaitPhase(c.ID, manifest.PhaseRejected); !strings.Contains(s.Campaign.Reason, "has the records of ddiff") {
			t.Errorf("reason %q", s.Campaign.Reason)
		}
	}
}
