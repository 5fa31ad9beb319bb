package coordinator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// TestTraceOfResumedCampaign: a campaign that is cancelled, resumed and finished has one root, a span for its second end,
// and no two spans with one id.
func TestTraceOfResumedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	tel, err := telemetry.Start(t.Context(), telemetry.Config{
		TraceFile: path, LogOutput: t.Output(),
	})
	must(t, err)
	gate := make(chan struct{})
	tc.set(func(item.Item, int) error {
		<-gate
		return nil
	})
	id := tc.submit("resumed", 0)
	stop := tc.leadWith(func(c *coordinator.Config) { c.Tracer = tel.Tracer("coordinator") })
	idle := tc.work(id)
	tc.await(id, "an item runs", func(s record.CampaignStatus) bool { return s.Status.Counts.Running > 0 })
	tc.want(id, record.WantCancelNow)
	close(gate)
	tc.awaitPhase(id, record.PhaseCancelled)
	tc.want(id, record.WantRun)
	s := tc.awaitPhase(id, record.PhaseFinished)
	idle()
	stop()
	must(t, tel.Shutdown(t.Context()))
	data, err := os.ReadFile(path)
	must(t, err)
	names, ids := map[string]int{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`"spanId":"([0-9a-f]+)"[^{}]*?"name":"([^"]+)"`).FindAllSubmatch(data, -1) {
		if names[string(m[2])]++; ids[string(m[1])] {
			t.Errorf("two spans have the id %s of a span %q", m[1], m[2])
		}
		ids[string(m[1])] = true
	}
	if names["campaign"] != 1 || names["end"] != 1 {
		t.Errorf("spans %v, want one root and one later end", names)
	}
	data, _, err = tc.board.Get(t.Context(), record.KeyCampaignPrefix+id)
	must(t, err)
	var c record.Campaign
	must(t, json.Unmarshal(data, &c))
	root := telemetry.CampaignSpan(id, c.Submitted)
	if s.Status.TraceID != root.TraceID().String() || !ids[root.SpanID().String()] {
		t.Errorf("trace %s of the status, root %s", s.Status.TraceID, root.SpanID())
	}
	if time.Since(c.Finished) > time.Minute || c.Last == nil {
		t.Errorf("finished %v, last %v", c.Finished, c.Last)
	}
}
