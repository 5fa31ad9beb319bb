package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestScan: two scans publish all items of a campaign again that the server no longer delivers, and two more sweep them. Waiting and
// leased items stay.
func TestScan(t *testing.T) {
	t.Parallel()
	server, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	const items = 3
	campaign := func(name string) *Queue {
		t.Helper()
		q, err := Open(t.Context(), nc, Config{Campaign: name, MaxAttempts: 1})
		for i := range items {
			err = errors.Join(err, q.PublishBatch(t.Context(), []Work{{Class: "c", ID: fmt.Sprint(i)}}))
		}
		// The consumer learns of an item later than the stream.
		for pending := uint64(0); err == nil && pending < items; {
			pending, _, err = q.Depth(t.Context())
		}
		must(t, err)
		return q
	}
	lease := func(q *Queue, n int) []*Lease {
		t.Helper()
		leases, err := q.Lease(t.Context(), n, 0)
		must(t, err)
		return leases
	}
	waiting, leased, exhausted := campaign("waiting"), campaign("leased"), campaign("exhausted")
	if n := len(lease(leased, items)); n != items {
		t.Fatalf("%d leases, want %d", n, items)
	}
	exhaust := func() {
		t.Helper()
		for range items * (1 + spareDeliveries) {
			for _, l := range lease(exhausted, 1) {
				must(t, l.Retry(t.Context(), 0))
			}
		}
		if n := len(lease(exhausted, 1)); n != 0 {
			t.Fatalf("%d leases of exhausted items", n)
		}
		for deadline := time.Now().Add(20 * time.Second); ; { // the server updates its counts a moment later
			pending, inFlight, err := exhausted.Depth(t.Context())
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%d items wait and %d are leased: %v", pending, inFlight, err)
			}
			if pending == 0 && inFlight == 0 {
				break
			}
		}
	}
	exhaust()

	l, err := newLink(nc, slog.New(slog.DiscardHandler), defaultTimeout)
	must(t, err)
	outcome := func(string, DeadLetter) ([]byte, error) { return []byte("dead"), nil }
	s := &sweeper{link: l, cfg: SweepConfig{Outcome: outcome}}
	for scan, left := range []uint64{items, items, items, items, 0, 0} {
		if scan == 3 {
			exhaust()
		}
		if err := s.scan(t.Context()); err != nil {
			t.Fatalf("scan %d: %v", scan+1, err)
		}
		for q, want := range map[*Queue]uint64{waiting: items, leased: items, exhausted: left} {
			if size, err := q.Size(t.Context()); err != nil || size != want {
				t.Errorf("after scan %d the campaign %s has %d items, want %d (%v)", scan+1, q.cfg.Campaign, size, want, err)
			}
		}
	}
	var swept []string
	for letter, err := range exhausted.DeadLetters(t.Context()) {
		if err != nil || letter.Attempts != 2*(1+spareDeliveries) {
			t.Fatalf("letter %+v, %v", letter, err)
		}
		swept = append(swept, letter.ID)
	}
	if !slices.Equal(swept, []string{"0", "1", "2"}) {
		t.Errorf("the items %v were swept", swept)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.scan(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a scan after the end of its context: %v", err)
	}
}
