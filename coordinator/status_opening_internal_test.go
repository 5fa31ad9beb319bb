package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/storage"
)

// TestStatusWhileOpening: a new leader that has not read the ledger yet leaves the counts of a campaign's status as they were, also if
// the campaign is rejected then, or waits for its prior.
func TestStatusWhileOpening(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	changed := func(c *record.Campaign) {
		c.Prior = record.PriorFile{SHA256: strings.Repeat("0", 64), Name: "prior"}
	}
	running := record.Counts{Items: 4, Pending: 2, Running: 1, Done: 1}
	for name, tt := range map[string]struct {
		change func(c *record.Campaign)
		phase  record.Phase
		want   record.Counts
		err    error
	}{
		"rejected": {changed, record.PhaseRejected, record.Counts{Items: 4, Pending: 3, Done: 1}, nil},
		"cancelled": {func(c *record.Campaign) { changed(c); c.Wanted = record.WantCancel }, record.PhaseCancelled,
			record.Counts{Items: 4, Cancelled: 3, Done: 1}, nil},
		"waits": {func(c *record.Campaign) { c.Spec.Prior = "https://host/prior.onnx" }, record.PhaseRunning, running, storage.ErrUnavailable},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.outcomes.ledger.Settle(r.ledgerIDs(t)[0], 0, ledger.Done, "")
		r.windows.complete, r.windows.warning = true, "3 rows are new"
		must(t, r.publishStatus(t.Context(), 1))
		r.s.archive = r.s.newArchiver()
		r.s.cfg.Models = &modelsAt{err: fmt.Errorf("%w: no route", storage.ErrUnavailable)}
		c := onRecord(t, r, tt.change)
		opened := newRunner(r.s, c)
		err := opened.run(t.Context(), c)
		if errors.Is(err, errDoubted) {
			err = opened.run(t.Context(), c)
		}
		if !errors.Is(err, tt.err) {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || s.Status.Counts != tt.want || s.Status.Phase != tt.phase || !s.Status.Complete || s.Status.Warning != "3 rows are new" {
			t.Errorf("%s: status %+v, %v, want %+v", name, s.Status, err, tt.want)
		}
	}
}

// ledgerIDs returns the identities of the items in the stored windows.
func (r *runner) ledgerIDs(t *testing.T) (ids []string) {
	t.Helper()
	for n := range r.windows.stored {
		for _, it := range windowOf(r, n, 2*n, 2).Items {
			ids = append(ids, it.ID)
		}
	}
	return ids
}
