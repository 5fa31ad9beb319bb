package board_test

import (
	"errors"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/manifest"
)

// TestDeletedRequest: a request whose campaign is deleted before a coordinator stores it was replaced; the campaign was not unknown.
func TestDeletedRequest(t *testing.T) {
	t.Parallel()
	_, _, b := boardtest.Start(t)
	spec, err := manifest.Parse("night", []byte("name: night\ndataset: {path: /photos}\ntasks: [denoise]\n"), "/")
	must(t, err)
	c, _, err := board.Submit(t.Context(), b, spec, board.Order{}, time.Now())
	must(t, err)
	c, err = board.Want(t.Context(), b, c.ID, manifest.WantPause)
	must(t, err)
	must(t, b.Delete(t.Context(), manifest.KeyCampaignPrefix+c.ID))
	if _, err := board.AwaitStored(t.Context(), b, c); !errors.Is(err, board.ErrReplaced) {
		t.Errorf("the request of a deleted campaign: %v", err)
	}
}
