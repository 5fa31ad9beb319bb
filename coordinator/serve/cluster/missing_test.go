package cluster_test

import (
	"errors"
	"testing"

	"ddiff/api"
	"ddiff/coordinator/board/boardtest"
	"ddiff/coordinator/serve"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestAttackCutOff: a NATS server that answers reads and completes no write, as one that is cut off from the others, may miss what was
// written since. No request is told then that a campaign or a token is unknown.
func TestAttackCutOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	ctx := t.Context()
	requests := map[string]func() error{
		"status": func() error { _, err := c.Campaign(ctx, "nobody"); return err },
		"logs":   func() error { _, err := c.Logs(ctx, "nobody", ""); return err },
		"items":  func() error { _, err := c.Items(ctx, "nobody", api.ItemQuery{}); return err },
		"output": func() error { _, err := c.Output(ctx, "nobody"); return err },
		"want":   func() error { _, err := c.Want(ctx, "nobody", manifest.WantPause); return err },
		"budget": func() error { _, err := c.SetBudget(ctx, "nobody", manifest.Budget{}); return err },
		"retry": func() error {
			_, err := c.Retry(ctx, "nobody", "", api.Retry{Outcomes: []item.Outcome{item.OutcomeDead}})
			return err
		},
		"revoke": func() error { return c.RevokeToken(ctx, "0123456789ab") },
	}
	check := func(answer error) {
		t.Helper()
		for name, request := range requests {
			if err := request(); !errors.Is(serve.Problem(err), answer) {
				t.Errorf("%s: %v, want: %v", name, err, answer)
			}
		}
	}
	restore := boardtest.CutOff(t, f.nc)
	check(api.ErrUnavailable)
	restore()
	check(api.ErrNotFound)
}
