package fleet

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// TestDeletedRecord: when the record of a campaign is deleted, its items are cancelled and no more are leased. The other campaigns stay.
func TestDeletedRecord(t *testing.T) {
	t.Parallel()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	board, err := queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	put := func(id string) {
		data, err := json.Marshal(recordOf(id))
		if err == nil {
			err = board.Put(t.Context(), record.KeyCampaignPrefix+id, data)
		}
		must(t, err)
	}
	put("a")
	put("b")
	f, _, _ := fleetOf(t, func(c *Config) { c.Board = board })
	t.Cleanup(lifecycle.Go(t.Context(), f.Run).Stop)
	wait := func(want ...string) {
		t.Helper()
		for deadline := time.After(time.Minute); ; {
			open, changed := f.open()
			var got []string
			for _, c := range open.all {
				got = append(got, c.record.ID)
			}
			if slices.Equal(got, want) {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("campaigns %v, want %v", got, want)
			}
		}
	}
	wait("a", "b")
	a, b := f.campaigns[record.KeyCampaignPrefix+"a"], f.campaigns[record.KeyCampaignPrefix+"b"]
	must(t, board.Delete(t.Context(), record.KeyCampaignPrefix+"a"))
	wait("b")
	if a.lifetime.Err() == nil || b.lifetime.Err() != nil {
		t.Errorf("the items of the deleted campaign: %v, of the other: %v", a.lifetime.Err(), b.lifetime.Err())
	}
	put("c")
	wait("b", "c")
}
