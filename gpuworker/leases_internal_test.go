package gpuworker

import (
	"context"
	"slices"
	"testing"
	"time"

	"ddiff/queue"
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

// TestLeaseExtension: an extension begins the lease again and tells what was left of it. One that failed changes nothing.
func TestLeaseExtension(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var told []time.Duration
	s := &leaseSet{
		interval: 10 * time.Second, now: func() time.Time { return now }, tasks: map[*task]time.Time{},
		remains: func(left time.Duration) { told = append(told, left) },
	}
	tk := &task{leased: now, lease: at(t, queueOf(t), "a", 1, queue.Marks{})}
	s.add([]*task{tk})
	now = now.Add(12 * time.Second)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.extend(ended); err == nil || len(told) != 0 || !s.tasks[tk].Equal(now.Add(-12*time.Second)) {
		t.Errorf("a failed extension: %v, told %v", err, told)
	}
	if err := s.extend(t.Context()); err != nil || !s.tasks[tk].Equal(now) {
		t.Errorf("an extension: %v, the lease began at %v, want %v", err, s.tasks[tk], now)
	}
	now = now.Add(5 * time.Second)
	s.remove(tk)
	if want := []time.Duration{18 * time.Second, 25 * time.Second}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
