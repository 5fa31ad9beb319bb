package coordinator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
)

// TestFaultPausesQuietCampaign: a report pauses a campaign without outcomes, and no campaign with recent ones.
func TestFaultPausesQuietCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 10)
	gate := tc.gated()
	id := tc.submit("fault", 0)
	tc.lead()
	tc.work(id)
	permit(gate, 1)
	tc.await(id, "one item done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 1 })
	q, err := tc.attach(t.Context(), id)
	must(t, err)
	report := func(quiet time.Duration) {
		t.Helper()
		leases, err := q.Lease(t.Context(), 1, patience)
		must(t, err)
		data, err := json.Marshal(record.Fault{Worker: "gpu-7", Reason: "access denied", Seconds: quiet.Seconds(), At: time.Now()})
		must(t, err)
		must(t, leases[0].PublishNotice(t.Context(), record.IDFault, data))
		must(t, leases[0].Release(context.Background()))
	}
	report(time.Hour) // the coordinator reads the reports in order
	permit(gate, 1)
	s := tc.await(id, "two items done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 2 })
	if s.Campaign.Phase != record.PhaseRunning {
		t.Fatalf("the campaign is %s after a report of another worker's fault", s.Campaign.Phase)
	}
	report(time.Nanosecond)
	s = tc.awaitPhase(id, record.PhasePaused)
	if r := s.Campaign.Reason; !strings.Contains(r, "gpu-7") || !strings.Contains(r, "access denied") || s.Campaign.Wanted != record.WantPause {
		t.Errorf("wanted %s, reason %q", s.Campaign.Wanted, r)
	}
	close(gate)
	tc.want(id, record.WantRun)
	s = tc.awaitPhase(id, record.PhaseFinished)
	if s.Campaign.Reason != "" || s.Status.Counts.Done != 20 {
		t.Errorf("reason %q, %+v", s.Campaign.Reason, s.Status.Counts)
	}
}

// TestStatusNamesSuspendedWorkers: the status of a campaign shows the workers that are suspended from it.
func TestStatusNamesSuspendedWorkers(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	beat := func(name, suspended, campaign string) {
		data, err := json.Marshal(record.Beat{
			Name: name, Schema: record.Schema, Suspended: suspended, SuspendedCampaign: campaign, At: time.Now(),
		})
		must(t, err)
		must(t, tc.board.Put(t.Context(), record.KeyWorkerPrefix+name, data))
	}
	beat("a", "", "")
	beat("b", "file is refused", "another")
	beat("c", "store is full", "")
	id := tc.submit("suspended", 0)
	tc.lead()
	tc.await(id, "the suspended worker", func(s record.CampaignStatus) bool {
		return s.Status.Problem == "1 of 3 workers are suspended: c: store is full"
	})
}
