package coordinator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/ledger"
	"ddiff/restore/item"
)

// A result comes from the store if the item is done, else from the ledger. A pending item has none; a lost one is noted and
// ends a strict report.
func TestResultsOfItems(t *testing.T) {
	t.Parallel()
	now, log := time.Unix(1e9, 0), &strings.Builder{}
	r := decidingRunner(t, &now, log)
	all := items(0, 6)
	for i, to := range []ledger.State{ledger.Pending, ledger.Failed, ledger.Dead, ledger.Done, ledger.Done, ledger.Done} {
		r.outcomes.ledger.Add(all[i].ID)
		r.outcomes.ledger.Settle(all[i].ID, 0, to, []string{"", "no light", "no memory", "", "", ""}[i])
	}
	putResult(t, r, all[3], item.OutcomeDone)
	must(t, r.results.store.Put(t.Context(), item.Key(all[4].ID, item.FileResult), []byte("{")))
	failures := map[int]item.Result{0: {Item: all[0], Outcome: item.OutcomeFailed, Reason: "unreadable"}}
	for name, failures := range map[string]map[int]item.Result{"all rows are readable": nil, "a row is unreadable": failures} {
		r.results.missing = nil
		var got []string
		must(t, r.results.of(t.Context(), r.outcomes.ledger, all, failures, func(res item.Result) bool {
			got = append(got, string(res.Outcome)+" "+res.Reason)
			return true
		}))
		want := []string{"failed no light", "dead no memory", "done ", "failed read items/", "failed read items/"}
		if failures != nil {
			want = append([]string{"failed unreadable"}, want...)
		}
		for i := range max(len(got), len(want)) {
			if len(got) != len(want) || !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", name, got, want)
				break
			}
		}
		if len(r.results.missing) != 1 || r.results.missing[0] != all[5].ID {
			t.Errorf("%s: missing %q", name, r.results.missing)
		}
	}
	if err := r.results.of(t.Context(), r.outcomes.ledger, all, nil, func(item.Result) bool { return false }); !errors.Is(err, errStop) {
		t.Errorf("the reader wants no more: %v", err)
	}
	w := windowOf(r, 0, 0, 6)
	putWindow(t, r, w)
	r.windows.add(w)
	for _, strict := range []bool{true, false} {
		var last error
		n := 0
		for _, err := range r.results.all(t.Context(), &r.windows, r.outcomes.ledger, strict) {
			last = err
			n++
		}
		var missing missingResultsError
		if errors.As(last, &missing) != strict || n != 5+len(missing) {
			t.Errorf("strict %t: %d results, %v", strict, n, last)
		}
	}
}

// A result whose files have not replaced those of another attempt is not there yet, however it is looked up. Staged files of an attempt that came
// second do not matter.
func TestResultWithStagedFiles(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	all, digest, other := items(0, 3), strings.Repeat("a", 64), strings.Repeat("b", 64)
	for i, staged := range []string{"", other, digest} {
		res := item.Result{
			Schema: item.SchemaVersion, Item: all[i], Outcome: item.OutcomeDone, Replaces: []string{item.FileTrace},
			Artifacts: map[string]string{item.FileTrace: digest, item.FileTruth: other},
		}
		data, err := item.EncodeResult(&res)
		must(t, err)
		must(t, r.results.store.Put(t.Context(), item.Key(all[i].ID, item.FileResult), data))
		if staged != "" {
			must(t, r.results.store.Put(t.Context(), item.StagedKey(all[i].ID, staged), nil))
		}
	}
	must(t, r.results.store.Put(t.Context(), item.CheckpointsFolder+all[0].ID+".starts", nil))
	var listed []string
	must(t, r.results.each(t.Context(), func(id string, _ time.Time) { listed = append(listed, id) }))
	for i, want := range []bool{true, true, false} {
		found, err := r.results.loadOne(t.Context(), all[i])
		if err != nil || found.found != want || found.damage != nil || slices.Contains(listed, all[i].ID) != want {
			t.Errorf("item %d: %+v, %v, listed %q", i, found, err, listed)
		}
	}
}
