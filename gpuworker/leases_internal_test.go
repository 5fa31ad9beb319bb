package gpuworker

import (
	"slices"
	"testing"
	"time"
)

// TestLeaseRemaining: what is left of a lease counts from the lease, or from its last extension, and each lease is told once
// when it is settled.
func TestLeaseRemaining(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var told []time.Duration
	s := &leaseSet{
		interval: 10 * time.Second, now: func() time.Time { return now }, tasks: map[*task]time.Time{},
		remains: func(left time.Duration) { told = append(told, left) },
	}
	first, second := &task{leased: now}, &task{leased: now}
	s.add([]*task{first, second})
	now = now.Add(20 * time.Second)
	s.remove(first)
	s.remove(first) // is not held
	now = now.Add(20 * time.Second)
	s.remove(second)
	if want := []time.Duration{10 * time.Second, -10 * time.Second}; !slices.Equal(told, want) || s.count() != 0 {
		t.Errorf("told %v, want %v", told, want)
	}
}
