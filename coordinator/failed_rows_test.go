package coordinator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/archive"
	"ddiff/internal/record"
)

// TestAttackReasons: the reason why a row cannot be restored is in the status and in the logs before the campaign ends.
func TestAttackReasons(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	must(t, os.WriteFile(filepath.Join(tc.dir, "broken.png"), []byte("no image"), 0o644))
	id := tc.submit("rows", 0)
	tc.leadArchiving(time.Hour, unchanged)
	s := tc.await(id, "a warning", func(s record.CampaignStatus) bool { return s.Status.Warning != "" })
	if s.Campaign.Phase.Ended() || !strings.Contains(s.Status.Warning, "2 items cannot be restored, the first: read ") ||
		!strings.Contains(s.Status.Warning, "not a PNG") {
		t.Errorf("phase %s, warning %q", s.Campaign.Phase, s.Status.Warning)
	}
	logs, _, err := archive.Logs(t.Context(), tc.store, s.Campaign, "")
	must(t, err)
	if len(logs) != 2 || logs[0].Name != "broken" || logs[0].Outcome != "failed" || !strings.Contains(logs[0].Reason, "not a PNG") {
		t.Errorf("logs %+v", logs)
	}
}
