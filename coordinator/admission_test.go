package coordinator_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/storage"
)

// countedLists counts the objects that listings of a store yield.
type countedLists struct {
	storage.Store
	listed atomic.Int64
}

func (s *countedLists) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			s.listed.Add(1)
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestAttackAdmission: the admission of a campaign lists no objects of other campaigns, so that its cost does not grow with
// their number.
func TestAttackAdmission(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	x := index.New(tc.store)
	const others = 500
	for i := range others {
		must(t, x.Add(t.Context(), index.Entry{
			ID: fmt.Sprintf("other-%03d", i), Number: 1, State: index.Archived, Output: index.OutputDigest(fmt.Sprint(i)),
			Row: index.Row{Phase: record.PhaseFinished, Priority: record.PriorityLow},
		}))
	}
	store := &countedLists{Store: tc.store}
	tc.leadArchiving(time.Hour, func(c *coordinator.Config) { c.Store = store })
	tc.awaitPhase(tc.submit("first", 0), record.PhasePreflight)
	before := store.listed.Load()
	tc.awaitPhase(tc.submit("second", 0), record.PhasePreflight)
	if n := store.listed.Load() - before; n > others/10 {
		t.Errorf("the admission of a campaign lists %d objects beside %d campaigns", n, others)
	}
}
