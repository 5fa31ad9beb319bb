package cluster_test

import (
	"errors"
	"testing"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// The owner of a campaign changes its budget, which is then that of the record; nobody changes that of a finished one.
func TestSetBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	url := f.serve(c, true)
	id := f.campaign("night", "ann", func(*manifest.Campaign) {})
	finished := f.campaign("day", "ann", func(c *manifest.Campaign) { c.Phase = manifest.PhaseFinished })
	ann := client(t, url, f.token(c, "ann", api.Submitter))
	want := manifest.Budget{Items: 5, Cost: 2.5}
	got, err := ann.SetBudget(t.Context(), id, want)
	must(t, err)
	record, err := board.Read(t.Context(), f.board, id)
	must(t, err)
	if got != want || record.Spec.Budget != want {
		t.Errorf("the answer is %+v, the record has %+v", got, record.Spec.Budget)
	}
	for campaign, b := range map[string]manifest.Budget{id: {Seconds: -1}, finished: want} {
		if _, err := ann.SetBudget(t.Context(), campaign, b); !errors.Is(err, api.ErrRefused) {
			t.Errorf("%s: %v", campaign, err)
		}
	}
}
