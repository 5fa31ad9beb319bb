package cluster_test

import (
	"errors"
	"slices"
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
	_, err := ann.SetBudget(t.Context(), id, manifest.Budget{Items: 4})
	must(t, err)
	want := manifest.Budget{Items: 5, Cost: 2.5}
	got, err := ann.SetBudget(t.Context(), id, want)
	must(t, err)
	list, err := ann.Campaigns(t.Context(), false)
	must(t, err)
	if !slices.ContainsFunc(list.Campaigns, func(s manifest.CampaignStatus) bool { return s.Campaign.Spec.Budget == want }) {
		t.Errorf("the list has %+v", list.Campaigns)
	}
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
