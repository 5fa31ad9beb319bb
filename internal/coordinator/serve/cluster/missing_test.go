package cluster_test

import (
	"context"
	"errors"
	"testing"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// TestAttackMissingRecord: a NATS server that is cut off from the others, or has lost its data, may miss records. No campaign of the store is
// unknown then, and only one that the store does not have is.
func TestAttackMissingRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	ctx := recordtest.Administrator(t.Context())
	requests := map[string]func(id string) error{
		"status": func(id string) error { _, err := c.Campaign(ctx, id); return err },
		"logs":   func(id string) error { _, err := c.Logs(ctx, id, ""); return err },
		"output": func(id string) error { _, err := c.Output(ctx, id); return err },
	}
	check := func() {
		t.Helper()
		for name, request := range requests {
			id := f.campaign(name, "ann", func(c *record.Campaign) { c.Released = true })
			must(t, f.board.Delete(t.Context(), record.KeyCampaignPrefix+id))
			if err := request(id); err != nil {
				t.Errorf("%s of a campaign of the store: %v", name, err)
			}
			if err := request("nobody"); !errors.Is(board.Problem(err), api.ErrNotFound) {
				t.Errorf("%s of no campaign: %v", name, err)
			}
		}
	}
	check()
	f.lead()
	requests = map[string]func(id string) error{
		"want":   func(id string) error { _, err := c.Want(ctx, id, record.WantPause); return err },
		"change": func(id string) error { _, err := c.Change(ctx, id, api.Change{Weight: 7}); return err },
		"retry": func(id string) error {
			limited, cancel := context.WithCancel(ctx)
			defer cancel()
			if id != "nobody" {
				cancel() // the campaign waits for its rows
			}
			_, err := c.Retry(limited, id, "", api.Retry{Outcomes: []item.Outcome{item.OutcomeDead}})
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			return err
		},
	}
	check()
	if err := c.RevokeToken(ctx, "0123456789ab"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an unknown token: %v", err)
	}
}
