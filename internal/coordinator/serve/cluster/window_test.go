package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/storage"
)

// windowReads is a store that counts the reads of windows.
type windowReads struct {
	storage.Store
	n *atomic.Int64
}

func (s windowReads) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.Contains(key, "/shards/") {
		s.n.Add(1)
	}
	return s.Store.Get(ctx, key)
}

// TestAttackItemCost: answers about the items of a window decode it once, whether it has 40 items or 4,000. The median times are for make api-test.
func TestAttackItemCost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var reads atomic.Int64
	c := f.openOver(windowReads{f.store, &reads})
	cost := map[int]time.Duration{}
	for _, n := range []int{40, 4000} {
		id := f.campaign(fmt.Sprint("night", n), "", func(c *record.Campaign) { c.Phase = record.PhaseRunning })
		ids := f.windows(id, n, n)
		var each []time.Duration
		first := int64(0)
		for i := range 41 {
			begin := time.Now()
			if d, err := c.Item(t.Context(), id, ids[i*n/41]); err != nil || d.Settings.Index != i*n/41 {
				t.Fatalf("item %d of %d: %+v, %v", i, n, d.Settings, err)
			}
			if each = append(each, time.Since(begin)); i == 0 {
				first = reads.Load()
			}
		}
		slices.Sort(each)
		cost[n] = each[len(each)/2]
		if more := reads.Load() - first; first == 0 || more != 0 {
			t.Errorf("%d items: the first answer read %d windows, 40 others %d", n, first, more)
		}
		reads.Store(0)
	}
	fmt.Printf("item_ms_of_40=%.2f item_ms_of_4000=%.2f\n", cost[40].Seconds()*1000, cost[4000].Seconds()*1000)
}
