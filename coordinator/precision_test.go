package coordinator_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// beats puts heartbeats of workers that suggest precisions on the board.
func (tc *testCluster) beats(suggested map[string]manifest.Precision) {
	tc.t.Helper()
	for name, p := range suggested {
		data, err := json.Marshal(manifest.Beat{Name: name, Schema: manifest.RecordSchema, Auto: p, At: time.Now()})
		must(tc.t, err)
		must(tc.t, tc.board.Put(tc.t.Context(), manifest.KeyWorkerPrefix+name, data))
	}
}

// submitAuto submits a campaign with the precision auto, whose first task stays in float32.
func (tc *testCluster) submitAuto(name string) string {
	tc.t.Helper()
	spec := tc.spec(name)
	spec.Precision, spec.Float32 = manifest.PrecisionAuto, []string{spec.Tasks[0].Name}
	c, _, err := board.Submit(tc.t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(tc.t, err)
	return c.ID
}

// A campaign with the precision auto waits for a worker, and its status says so. It then gets one precision for all its
// items but those of a task that stays in float32, which later
// workers and leaders do not change, even if the board has lost the record.
func TestAutoPrecision(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	var mu sync.Mutex
	seen := map[manifest.Precision]int{}
	tc.set(func(it manifest.Item, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		seen[it.Precision]++
		return it.CheckID()
	})
	id := tc.submitAuto("auto")
	stop := tc.lead()
	waiting := tc.await(id, "a problem", func(s manifest.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.Contains(waiting.Status.Problem, "waiting for a worker") || waiting.Status.Counts.Items != 0 {
		t.Errorf("the status is %+v", waiting.Status)
	}
	tc.beats(map[string]manifest.Precision{"a": manifest.PrecisionFloat32, "b": manifest.PrecisionBFloat16, "c": manifest.PrecisionBFloat16, "old": ""})
	tc.await(id, "the preflight", func(s manifest.CampaignStatus) bool { return s.Campaign.Phase == manifest.PhasePreflight })
	stop()

	tc.beats(map[string]manifest.Precision{"b": manifest.PrecisionFloat32, "c": manifest.PrecisionFloat32})
	must(t, tc.board.Delete(t.Context(), manifest.KeyCampaignPrefix+id))
	tc.lead()
	tc.work(id)
	s := tc.awaitPhase(id, manifest.PhaseFinished)
	if s.Campaign.Precision != manifest.PrecisionBFloat16 || s.Status.Counts.Done != 4 || s.Status.Problem != "" {
		t.Errorf("the record has %q; status %+v", s.Campaign.Precision, s.Status)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 || seen[manifest.PrecisionBFloat16] != 2 || seen[manifest.PrecisionFloat32] != 2 {
		t.Errorf("items by precision: %v, want 2 in bfloat16 and 2 of the first task in float32", seen)
	}
}

// A campaign that waits for the choice can be cancelled.
func TestCancelBeforePrecision(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	id := tc.submitAuto("auto")
	tc.lead()
	tc.await(id, "a problem", func(s manifest.CampaignStatus) bool { return s.Status.Problem != "" })
	_, err := board.Want(t.Context(), tc.board, id, manifest.WantCancel)
	must(t, err)
	tc.awaitPhase(id, manifest.PhaseCancelled)
}

// If no live worker computes in the precision of a campaign, its status names the precision.
func TestStatusNamesMissingPrecision(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("half")
	spec.Precision = manifest.PrecisionFloat16
	c, _, err := board.Submit(t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(t, err)
	data, err := json.Marshal(manifest.Beat{
		Name: "plain", Schema: manifest.RecordSchema, At: time.Now(),
		Refused: map[string]string{c.ID: "this worker cannot process the campaign: it has the precision float16, this worker computes in float32"},
	})
	must(t, err)
	must(t, tc.board.Put(t.Context(), manifest.KeyWorkerPrefix+"plain", data))
	tc.lead()
	s := tc.await(c.ID, "a problem", func(s manifest.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.Contains(s.Status.Problem, "none of 1 live workers") || !strings.Contains(s.Status.Problem, "precision float16") {
		t.Errorf("the problem is %q", s.Status.Problem)
	}
}

// The precision auto of a campaign with a method that needs the gradient of the network is float32, whatever the workers suggest.
func TestAutoPrecisionOfGradient(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("gradient")
	spec.Precision, spec.Methods = manifest.PrecisionAuto, []string{"ddiff", "dps"}
	c, _, err := board.Submit(t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(t, err)
	tc.beats(map[string]manifest.Precision{"a": manifest.PrecisionBFloat16, "b": manifest.PrecisionBFloat16})
	tc.lead()
	s := tc.await(c.ID, "the choice", func(s manifest.CampaignStatus) bool { return s.Campaign.Precision != "" })
	if s.Campaign.Precision != manifest.PrecisionFloat32 {
		t.Errorf("the precision is %q, want float32", s.Campaign.Precision)
	}
}
