package coordinator

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/report"
	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
)

// items returns items with the identities from first on.
func items(first, n int) (out []manifest.Item) {
	for i := range n {
		out = append(out, manifest.Item{ID: id(first + i), Index: first + i, Name: id(first + i)[:6], Solver: json.RawMessage(`{"steps":7}`)})
	}
	return out
}

// putResult stores a result of an item.
func putResult(t *testing.T, r *runner, it manifest.Item, outcome manifest.Outcome) {
	t.Helper()
	data, err := json.Marshal(manifest.Result{Schema: manifest.SchemaVersion, Item: it, Outcome: outcome})
	must(t, err)
	must(t, r.results.Put(t.Context(), manifest.ItemKey(it.ID, manifest.FileResult), data))
}

// Stored results settle pending items of every chunk. A damaged one, and one of another item or outcome, fails its item.
func TestSettleStored(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	r := decidingRunner(t, &now, &log)
	all := items(0, 2*loadChunk+1)
	for _, it := range all {
		r.ledger.Add(it.ID)
	}
	r.ledger.Settle(all[3].ID, 0, ledger.Failed, "by a worker")
	for _, i := range []int{0, 3, loadChunk - 1, loadChunk, 2 * loadChunk} {
		putResult(t, r, all[i], manifest.OutcomeDone)
	}
	putResult(t, r, all[5], manifest.OutcomeFailed)
	putResult(t, r, manifest.Item{ID: all[7].ID, Name: "of another campaign"}, manifest.OutcomeDone)
	must(t, r.results.Put(t.Context(), manifest.ItemKey(all[6].ID, manifest.FileResult), []byte("{")))
	must(t, r.settleStored(t.Context(), all, nil))
	for i, it := range all {
		want := ledger.Pending
		switch i {
		case 0, 7, loadChunk - 1, loadChunk, 2 * loadChunk:
			want = ledger.Done
		case 3, 5, 6:
			want = ledger.Failed
		}
		if got := r.ledger.State(it.ID); got != want || r.ledger.WasFound(it.ID) != (want != ledger.Pending && i != 3) {
			t.Errorf("item %d is %v, found %t, want %v", i, got, r.ledger.WasFound(it.ID), want)
		}
	}
	if reason := r.ledger.Reason(all[5].ID); !strings.Contains(reason, "it is not the result of this item") || !strings.Contains(reason, "remove the file") {
		t.Errorf("reason %q", reason)
	}
	must(t, r.parts.Fold(t.Context(), 0, false))
	again := ledger.New()
	for _, it := range all {
		again.Add(it.ID)
	}
	if _, err := r.parts.Enter(t.Context(), again); err != nil || again.Total(0, false).Done != 5 || again.Total(0, false).Failed != 2 { // found outcomes are stored at once
		t.Errorf("stored outcomes %+v, %v", again.Total(0, false), err)
	}
	// Only the included items are looked up.
	r.ledger = ledger.New()
	for _, it := range all {
		r.ledger.Add(it.ID)
	}
	include := make([]bool, len(all))
	include[loadChunk] = true
	if err := r.settleStored(t.Context(), all, include); err != nil || r.ledger.Total(0, false).Done != 1 || r.ledger.State(all[loadChunk].ID) != ledger.Done {
		t.Errorf("%d done, %v", r.ledger.Total(0, false).Done, err)
	}
}

// A report has the stored result of a done item, the ledger's of a failed one, and names missing and damaged results.
func TestSettledResult(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	all := items(0, 4)
	for i, to := range []ledger.State{ledger.Pending, ledger.Failed, ledger.Dead, ledger.Done} {
		r.ledger.Add(all[i].ID)
		r.ledger.Settle(all[i].ID, 0, to, "because")
	}
	if _, ok := r.settledResult(all[0], stored{}); ok {
		t.Error("a pending item has a result")
	}
	for i, want := range []manifest.Outcome{"", manifest.OutcomeFailed, manifest.OutcomeDead} {
		if res, ok := r.settledResult(all[i], stored{}); i > 0 && (!ok || res.Outcome != want || res.Reason != "because" || res.Item.ID != all[i].ID) {
			t.Errorf("result %+v", res)
		}
	}
	good := manifest.Result{Outcome: manifest.OutcomeDone}
	if res, ok := r.settledResult(all[3], stored{found: true, result: good}); !ok || res.Outcome != manifest.OutcomeDone || len(r.missing) != 0 {
		t.Errorf("result %+v", res)
	}
	if res, ok := r.settledResult(all[3], stored{found: true, damage: errors.New("cut")}); !ok || res.Reason != "cut" || len(r.missing) != 0 {
		t.Errorf("result %+v", res)
	}
	res, ok := r.settledResult(all[3], stored{})
	if !ok || res.Outcome != manifest.OutcomeFailed || !strings.Contains(res.Reason, "it is missing") || !slices.Equal(r.missing, []string{all[3].ID}) {
		t.Errorf("result %+v, missing %q", res, r.missing)
	}
}

// A Run reports every item once: failed rows, copies of settled and of pending identities, and stored results.
func TestEnteredWindow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	reported := map[int]bool{} // found, by index
	var read []int
	run := &Run{runner: r, copies: map[string][]manifest.Item{}, cfg: RunConfig{
		Finished: func(res manifest.Result, found bool) {
			if _, twice := reported[res.Item.Index]; twice {
				t.Errorf("item %d is reported twice", res.Item.Index)
			}
			reported[res.Item.Index] = found
		},
		Read: func(n, steps int, _ bool) { read = append(read, n, steps) },
	}}
	r.s.cfg.run, r.local = &run.cfg, run
	enter := func(w *shard.Window) {
		t.Helper()
		data, _, err := w.Encode()
		if err == nil {
			err = r.s.cfg.Store.Put(t.Context(), shard.Key(r.id, w.Number), data)
		}
		must(t, err)
		must(t, run.windowRead(t.Context(), w, r.addWindow(w)))
	}
	first := &shard.Window{Header: shard.Header{Schema: manifest.RecordSchema, Campaign: r.id, Items: 5}, Items: items(0, 4)}
	first.Failed = []manifest.Result{{Item: manifest.Item{ID: id(90), Index: 4}, Outcome: manifest.OutcomeFailed}}
	putResult(t, r, first.Items[0], manifest.OutcomeDone)
	enter(first)
	second := &shard.Window{Header: shard.Header{Schema: manifest.RecordSchema, Campaign: r.id, Number: 1, Item: 5, Items: 3}}
	for i, n := range []int{0, 1, 1} { // copies
		it := first.Items[n]
		it.Index = 5 + i
		second.Items = append(second.Items, it)
	}
	enter(second)
	if !slices.Equal(read, []int{5, 21, 8, 21}) {
		t.Errorf("read %v", read)
	}
	if len(reported) != 3 || !reported[0] || reported[4] || !reported[5] {
		t.Errorf("reported %v", reported)
	}
	outcome := func(i int, o manifest.Outcome) {
		t.Helper()
		data, err := json.Marshal(manifest.Result{Item: first.Items[i], Outcome: o})
		must(t, err)
		must(t, r.settleEvents(event{result: queue.Result{ID: first.Items[i].ID, Payload: data, Seq: uint64(i)}}))
	}
	outcome(1, manifest.OutcomeDone)
	outcome(1, manifest.OutcomeDone)
	outcome(2, manifest.OutcomeFailed)
	if len(reported) != 7 || reported[1] || reported[6] || reported[7] || len(run.copies) != 0 || r.outcomes.seen != 2 {
		t.Errorf("reported %v, %d copies", reported, len(run.copies))
	}
	if counts := r.ledger.Total(0, false); counts.Done != 5 || counts.Failed != 2 || counts.Pending != 1 {
		t.Errorf("counts %+v", counts)
	}
}

// An incomplete run keeps a stored report of more restored items.
func TestKeptReport(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for done, want := range map[int]bool{2: false, 3: true} {
		r := decidingRunner(t, &now, &strings.Builder{})
		run := &Run{runner: r, cfg: RunConfig{Store: r.results}}
		if run.keepsReport(t.Context()) {
			t.Error("a missing report is kept")
		}
		data, err := json.Marshal(aggregate.Summary{Done: done})
		must(t, err)
		must(t, r.results.Put(t.Context(), report.KeySummaryJSON, data))
		for i := range 2 {
			r.ledger.Add(id(i))
			r.ledger.Settle(id(i), 0, ledger.StateOf(manifest.OutcomeDone), "")
		}
		if got := run.keepsReport(t.Context()); got != want {
			t.Errorf("%d done items: kept %t", done, got)
		}
		r.windows.complete = true
		if run.keepsReport(t.Context()) {
			t.Error("a complete run keeps an old report")
		}
	}
}

// The number of solver steps is 0 if it is unknown.
func TestStepsOf(t *testing.T) {
	t.Parallel()
	for solver, want := range map[string]int{`{"steps":12}`: 12, `{}`: 0, `{"steps":"x"}`: 0, ``: 0} {
		if got := stepsOf(manifest.Item{Solver: json.RawMessage(solver)}); got != want {
			t.Errorf("%s: %d steps, want %d", solver, got, want)
		}
	}
}
