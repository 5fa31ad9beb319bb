package coordinator_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// TestListSkipsMalformedRecords: one malformed record does not hide the others.
func TestListSkipsMalformedRecords(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	first, second := tc.submit("first", 0), tc.submit("second", 0)
	must(t, tc.board.Put(t.Context(), record.KeyCampaignPrefix+"garbage", []byte("{")))
	must(t, tc.board.Put(t.Context(), record.KeyCampaignPrefix+"newer", []byte(`{"schema":99,"id":"newer"}`)))
	must(t, tc.board.Put(t.Context(), record.KeyStatusPrefix+first, []byte("not JSON")))
	must(t, tc.board.Put(t.Context(), record.KeyStatusPrefix+second, []byte(`{"id":"`+second+`","counts":{"items":7}}`)))

	all, skipped, err := board.Campaigns(t.Context(), tc.board)
	must(t, err)
	if len(all) != 2 || all[0].Campaign.ID != first || all[1].Campaign.ID != second || all[1].Status.Counts.Items != 7 {
		t.Errorf("listed %+v", all)
	}
	text := errors.Join(skipped...).Error()
	for _, name := range []string{"campaign garbage", "campaign newer", "status of campaign " + first} {
		if !strings.Contains(text, name) {
			t.Errorf("%q does not name %s", text, name)
		}
	}
	if len(skipped) != 3 {
		t.Errorf("%d records were skipped, want 3: %s", len(skipped), text)
	}
}

func TestWorkersSkipMalformedRecords(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	must(t, tc.board.Put(t.Context(), record.KeyWorkerPrefix+"good", []byte(`{"name":"good"}`)))
	must(t, tc.board.Put(t.Context(), record.KeyWorkerPrefix+"bad", []byte(`[]`)))
	beats, skipped, err := board.Workers(t.Context(), tc.board)
	must(t, err)
	if len(beats) != 1 || beats[record.KeyWorkerPrefix+"good"].Name != "good" {
		t.Errorf("beats %v", beats)
	}
	if len(skipped) != 1 || !strings.Contains(skipped[0].Error(), "worker.bad") {
		t.Errorf("skipped %v", skipped)
	}
}
