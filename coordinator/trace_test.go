package coordinator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/manifest"
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
	tc.await(id, "an item runs", func(s manifest.CampaignStatus) bool { return s.Status.Counts.Running > 0 })
	tc.want(id, manifest.WantCancelNow)
	close(gate)
	tc.awaitPhase(id, manifest.PhaseCancelled)
	tc.want(id, manifest.WantRun)
	s := tc.awaitPhase(id, manifest.PhaseFinished)
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
	record, _, err := tc.board.Get(t.Context(), manifest.KeyCampaignPrefix+id)
	must(t, err)
	var c manifest.Campaign
	must(t, json.Unmarshal(record, &c))
	root := telemetry.CampaignSpan(id, c.Submitted)
	if s.Status.TraceID != root.TraceID().String() || !ids[root.SpanID().String()] {
		t.Errorf("trace %s of the status, root %s", s.Status.TraceID, root.SpanID())
	}
	if time.Since(c.Finished) > time.Minute || c.Ends != 2 {
		t.Errorf("finished %v, ends %d", c.Finished, c.Ends)
	}
}
