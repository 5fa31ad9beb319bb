package coordinator_test

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator"
	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/prior"
)

// history stores a running campaign of n items and the outcomes of all, as a leader leaves them: those of the last
// window are in the result stream.
func (tc *testCluster) history(n int, rows shard.Rows) (id string) {
	tc.t.Helper()
	spec := tc.spec("long")
	spec.Tasks = spec.Tasks[:1]
	must(tc.t, spec.Validate(shard.Vocabulary()))
	c, _, err := board.Submit(tc.t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(tc.t, err)
	p, err := prior.Open(prior.Bundled)
	must(tc.t, err)
	sharder, err := shard.New(shard.Config{Spec: spec, Prior: &p.Description, Sources: manifest.Files{}, Rows: rows, Items: tc.window})
	must(tc.t, err)
	ctx, cancel := context.WithCancel(tc.t.Context())
	defer cancel()
	parts := ledger.NewParts(ledger.PartsConfig{Store: tc.store, Campaign: c.ID, Now: time.Now, Logger: tc.log, Purge: func(context.Context, uint64) error { return nil }})
	windows, items := 0, 0
	var unstored []manifest.Item
	for w, err := range sharder.Windows(ctx, shard.Position{}) {
		must(tc.t, err)
		data, err := w.Encode()
		must(tc.t, err)
		must(tc.t, tc.store.Create(ctx, shard.Key(c.ID, w.Number), data))
		items += len(w.Items)
		if items >= n {
			unstored = w.Items
			break
		}
		for _, it := range w.Items {
			parts.NoteOutcome(it.ID, 0, ledger.Done, "", true)
		}
		must(tc.t, parts.Fold(ctx, 0, false))
		windows++
	}
	q, err := tc.open(ctx, c.ID, 3)
	must(tc.t, err)
	event, err := json.Marshal(manifest.Event{Outcome: manifest.OutcomeDone, Finished: time.Now().UTC()})
	must(tc.t, err)
	var group errgroup.Group
	group.SetLimit(128)
	for _, it := range unstored {
		group.Go(func() error { return q.PublishResult(ctx, it.ID, 0, event) })
	}
	must(tc.t, group.Wait())
	_, err = board.Update(ctx, tc.board, c.ID, func(c *manifest.Campaign) error {
		c.Phase, c.Released, c.Shards, c.Items, c.Rows = manifest.PhaseRunning, true, windows+1, items, items
		return nil
	})
	must(tc.t, err)
	return c.ID
}

// takeoverItems is the number of outcomes of TestTakeover.
var takeoverItems = flag.Int("takeover-items", 3*64, "outcomes before the takeover: 192, or a multiple of 4096")

// TestTakeover measures how long a new leader needs until a worker leases an item that it has published, after a history
// whose outcomes are stored. With -takeover-items=1003520 it shows the takeover after a million outcomes.
func TestTakeover(t *testing.T) {
	n := *takeoverItems
	tc := newTestCluster(t, 0)
	tc.log, tc.window = slog.New(slog.DiscardHandler), min(4096, n/3)
	rows := hintedRows(n + tc.window)
	id := tc.history(n, rows) // the last window needs the next row
	q, err := tc.open(t.Context(), id, 3)
	must(t, err)
	begin := time.Now()
	tc.leadWith(func(c *coordinator.Config) { c.Rows, c.Tick, c.Stall = rows, 100*time.Millisecond, 15*time.Second })
	leases, err := q.Lease(t.Context(), 1, 10*patience)
	took := time.Since(begin)
	must(t, err)
	if len(leases) != 1 {
		t.Fatal("no lease")
	}
	tc.await(id, "the new window", func(s manifest.CampaignStatus) bool {
		return s.Status.Counts.Items == n+tc.window && s.Status.Counts.Done == n
	})
	t.Logf("%d outcomes: takeover_s=%.2f to the first lease", n, took.Seconds())
}
