//go:build !race

package coordinator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/internal/restore/prior"
)

// TestMemoryOfWaitingCampaigns measures the memory of a leader, with its queue server, for campaigns that wait for a
// worker. Half of them have a prior of their own file with equal bytes.
// The race detector would take ten times as long.
func TestMemoryOfWaitingCampaigns(t *testing.T) {
	const campaigns, limit = 4, 3 << 20
	tc := newTestCluster(t, 0)
	data, err := prior.Read(prior.Bundled)
	must(t, err)
	file := filepath.Join(t.TempDir(), "other.onnx")
	must(t, os.WriteFile(file, data, 0o644))
	tc.leadWith(func(c *coordinator.Config) { c.Rows = hintedRows(3000) })
	first := tc.submit("first", 2)
	tc.awaitPhase(first, record.PhasePreflight)
	before := heap()
	var ids []string
	for i := range campaigns {
		spec := tc.spec(fmt.Sprintf("waiting%d", i))
		if i%2 == 0 {
			spec.Prior = file
		}
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{Canary: 2}, time.Now())
		must(t, err)
		ids = append(ids, c.ID)
	}
	for _, id := range ids {
		tc.awaitPhase(id, record.PhasePreflight)
	}
	each := (int64(heap()) - int64(before)) / campaigns
	t.Logf("campaign_mib=%.2f", float64(each)/(1<<20))
	if each > limit {
		t.Errorf("a waiting campaign takes %d bytes, at most %d are allowed", each, limit)
	}
}
