package coordinator_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// The items of a campaign have its precision, but those of a task that stays in float32. The precision auto is refused.
func TestPrecisionOfItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	var mu sync.Mutex
	seen := map[manifest.Precision]int{}
	tc.set(func(it item.Item, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		seen[it.Precision]++
		return it.CheckID()
	})
	spec := tc.spec("mixed")
	spec.Precision, spec.Float32 = manifest.PrecisionAuto, []string{spec.Tasks[0].Name}
	_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "precision: auto is for ddiff run") {
		t.Errorf("auto: %v", err)
	}
	spec.Precision = manifest.PrecisionBFloat16
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	tc.lead()
	tc.work(c.ID)
	tc.awaitPhase(c.ID, record.PhaseFinished)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 || seen[manifest.PrecisionBFloat16] != 2 || seen[manifest.PrecisionFloat32] != 2 {
		t.Errorf("items by precision: %v, want 2 in bfloat16 and 2 of the first task in float32", seen)
	}
}

// If no live worker computes in the precision of a campaign, its status names the precision.
func TestStatusNamesMissingPrecision(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("half")
	spec.Precision = manifest.PrecisionFloat16
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	data, err := json.Marshal(record.Beat{
		Name: "plain", Schema: record.Schema, At: time.Now(),
		Refused: map[string]string{c.ID: "this worker cannot process the campaign: it has the precision float16, this worker computes in float32"},
	})
	must(t, err)
	must(t, tc.board.Put(t.Context(), record.KeyWorkerPrefix+"plain", data))
	tc.lead()
	s := tc.await(c.ID, "a problem", func(s record.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.Contains(s.Status.Problem, "none of 1 live workers") || !strings.Contains(s.Status.Problem, "precision float16") {
		t.Errorf("the problem is %q", s.Status.Problem)
	}
}
