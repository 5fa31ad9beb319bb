package coordinator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ddiff/manifest"
)

// TestLedgerAddsUp enters and settles items in random order, with few identities for many
// items, and holds the ledger against a plain list after every step.
func TestLedgerAddsUp(t *testing.T) {
	t.Parallel()
	outcomes := []manifest.Outcome{manifest.OutcomeDone, manifest.OutcomeFailed, manifest.OutcomeDead, "", "unheard-of"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLedger()
		var expected []string                  // the identity of each item
		final := map[string]manifest.Outcome{} // of each identity
		for range 60 {
			id := fmt.Sprint(random.IntN(8))
			if random.IntN(2) == 0 {
				l.expect(manifest.Item{ID: id, Index: len(expected)})
				expected = append(expected, id)
			} else {
				o := outcomes[random.IntN(len(outcomes))]
				settled := l.settle(manifest.Result{Item: manifest.Item{ID: id}, Outcome: o})
				n := 0
				if _, known := final[id]; !known && slices.Contains(outcomes[:3], o) {
					if n = count(expected, id); n > 0 {
						final[id] = o
					}
				}
				if len(settled) != n {
					t.Fatalf("seed %d: settling %s as %q settles %d items, want %d", seed, id, o, len(settled), n)
				}
			}
			check(t, l, expected, final)
		}
	}
}

func count(ids []string, id string) int {
	n := 0
	for _, x := range ids {
		if x == id {
			n++
		}
	}
	return n
}

// check holds the ledger against what was entered.
func check(t *testing.T, l *ledger, expected []string, final map[string]manifest.Outcome) {
	t.Helper()
	want := Counts{Items: len(expected)}
	open := map[string]bool{}
	for _, id := range expected {
		switch final[id] {
		case manifest.OutcomeDone:
			want.Done++
		case manifest.OutcomeFailed:
			want.Failed++
		case manifest.OutcomeDead:
			want.Dead++
		default:
			want.Pending++
			open[id] = true
		}
	}
	got := l.counts
	if got != want || got.Items != got.Done+got.Failed+got.Dead+got.Pending {
		t.Fatalf("counts %+v, want %+v", got, want)
	}
	pending := l.pending()
	for _, it := range pending {
		if !open[it.ID] {
			t.Fatalf("item %s is pending and has a final state", it.ID)
		}
	}
	if len(pending) != len(open) {
		t.Fatalf("%d identities are pending, want %d", len(pending), len(open))
	}
	all := l.all()
	if len(all) != want.Items-want.Pending {
		t.Fatalf("%d final results, want %d", len(all), want.Items-want.Pending)
	}
	for i, r := range all {
		if r.Outcome != final[r.Item.ID] || expected[r.Item.Index] != r.Item.ID {
			t.Fatalf("item %d has the result of another", r.Item.Index)
		}
		if i > 0 && all[i-1].Item.Index >= r.Item.Index {
			t.Fatalf("the results are not in the order of the manifest")
		}
	}
}
