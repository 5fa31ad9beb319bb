package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ddiff/internal/record"
)

// TestAttackItemCost: the answer about an item takes as long in a window of 4,000 items as in one of 40.
func TestAttackItemCost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	cost := map[int]time.Duration{}
	for _, n := range []int{40, 4000} {
		id := f.campaign(fmt.Sprint("night", n), "", func(c *record.Campaign) { c.Phase = record.PhaseRunning })
		ids := f.windows(id, n, n)
		var each []time.Duration
		for i := range 41 {
			begin := time.Now()
			if d, err := c.Item(t.Context(), id, ids[i*n/41]); err != nil || d.Settings.Index != i*n/41 {
				t.Fatalf("item %d of %d: %+v, %v", i, n, d.Settings, err)
			}
			each = append(each, time.Since(begin))
		}
		slices.Sort(each)
		cost[n] = each[len(each)/2]
	}
	fmt.Printf("item_ms_of_40=%.2f item_ms_of_4000=%.2f\n", cost[40].Seconds()*1000, cost[4000].Seconds()*1000)
	if cost[4000] > 3*cost[40]+5*time.Millisecond {
		t.Errorf("an item of 4,000 takes %v, one of 40 %v", cost[4000], cost[40])
	}
}
