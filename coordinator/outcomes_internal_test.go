package coordinator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// items returns items with the identities from first on.
func items(first, n int) (out []item.Item) {
	for i := range n {
		out = append(out, item.Item{ID: id(first + i), Index: first + i, Name: id(first + i)[:6], Solver: json.RawMessage(`{"steps":7}`)})
	}
	return out
}

// putResult stores a result of an item.
func putResult(t *testing.T, r *runner, it item.Item, outcome item.Outcome) {
	t.Helper()
	data, err := json.Marshal(item.Result{Schema: item.SchemaVersion, Item: it, Outcome: outcome})
	must(t, err)
	must(t, r.results.store.Put(t.Context(), item.Key(it.ID, item.FileResult), data))
}

// Stored results settle pending items of every chunk. A damaged one, and one of another item or outcome, fails its item.
func TestSettleStored(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	r := decidingRunner(t, &now, &log)
	all := items(0, 2*loadChunk+1)
	for _, it := range all {
		r.outcomes.ledger.Add(it.ID)
	}
	r.outcomes.ledger.Settle(all[3].ID, 0, ledger.Failed, "by a worker")
	for _, i := range []int{0, 3, loadChunk - 1, loadChunk, 2 * loadChunk} {
		putResult(t, r, all[i], item.OutcomeDone)
	}
	putResult(t, r, all[5], item.OutcomeFailed)
	putResult(t, r, item.Item{ID: all[7].ID, Name: "of another campaign"}, item.OutcomeDone)
	must(t, r.results.store.Put(t.Context(), item.Key(all[6].ID, item.FileResult), []byte("{")))
	must(t, r.outcomes.settleStored(t.Context(), &r.results, all, r.rec))
	for i, it := range all {
		want := ledger.Pending
		switch i {
		case 0, 7, loadChunk - 1, loadChunk, 2 * loadChunk:
			want = ledger.Done
		case 3, 5, 6:
			want = ledger.Failed
		}
		if got := r.outcomes.ledger.State(it.ID); got != want || r.outcomes.ledger.WasFound(it.ID) != (want != ledger.Pending && i != 3) {
			t.Errorf("item %d is %v, found %t, want %v", i, got, r.outcomes.ledger.WasFound(it.ID), want)
		}
	}
	if reason := r.outcomes.ledger.Reason(all[5].ID); !strings.Contains(reason, "it is not the result of this item") || !strings.Contains(reason, "move the item's folder away") {
		t.Errorf("reason %q", reason)
	}
	must(t, r.outcomes.parts.Fold(t.Context(), 0, false))
	again := ledger.New()
	for _, it := range all {
		again.Add(it.ID)
	}
	if _, err := r.outcomes.parts.Enter(t.Context(), again); err != nil || again.Total(0, false).Done != 5 || again.Total(0, false).Failed != 2 { // found outcomes are stored at once
		t.Errorf("stored outcomes %+v, %v", again.Total(0, false), err)
	}
}

// datedStore has the times at which its objects were stored.
type datedStore struct {
	storage.Store
	modified map[string]time.Time
}

func (s datedStore) Stat(ctx context.Context, key string) (storage.Info, error) {
	info, err := s.Store.Stat(ctx, key)
	info.Modified = s.modified[key]
	return info, err
}

// A result that is found costs its device-seconds if this submission of the campaign made it and has not paid for it before. The clocks of the
// store and of the workers may be behind that of the coordinator.
func TestFoundResultCosts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	r.rec.Submitted = now.Add(-time.Minute)
	dated := datedStore{r.results.store, map[string]time.Time{}}
	r.results.store = dated
	all := items(0, 5)
	for i, found := range []struct {
		campaign string
		stored   time.Time
	}{{r.id, now}, {"other", now}, {r.id, r.rec.Submitted.Add(-clockSkew - 1)}, {r.id, now}, {r.id, r.rec.Submitted.Add(-clockSkew)}} {
		r.outcomes.ledger.Add(all[i].ID)
		it := all[i]
		it.Campaign = found.campaign
		finished := found.stored.Add(-1000 * time.Hour) // by the worker's clock
		data, err := json.Marshal(item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeDone, Seconds: 4, Pool: "spot", Finished: finished})
		must(t, err)
		must(t, r.results.store.Put(t.Context(), item.Key(it.ID, item.FileResult), data))
		dated.modified[item.Key(it.ID, item.FileResult)] = found.stored
	}
	r.outcomes.ledger.MarkMissing(all[3].ID, 0) // its outcome had the seconds
	for range 2 {
		must(t, r.outcomes.settleStored(t.Context(), &r.results, all, r.rec))
	}
	want := []record.Use{{Month: record.MonthOf(now), Pool: "spot", Seconds: 8}}
	if uses := r.outcomes.ledger.Uses(); !slices.Equal(uses, want) || r.outcomes.ledger.Open() != 0 {
		t.Errorf("used %+v, want %+v", uses, want)
	}
}
