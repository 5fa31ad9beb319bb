package dataset

import (
	"fmt"
	"testing"
)

// Buckets stay known up to the limit, and then one makes room for the next.
func TestKnownBuckets(t *testing.T) {
	t.Parallel()
	b := &buckets{known: map[string]*bucket{}}
	for i := range maxBuckets {
		b.entry(fmt.Sprint(i))
		if len(b.known) != i+1 {
			t.Fatalf("%d buckets are known after %d", len(b.known), i+1)
		}
	}
	first := b.entry("0")
	if first != b.known["0"] || len(b.known) != maxBuckets {
		t.Error("a known bucket is opened again")
	}
	for i := range 3 {
		b.entry(fmt.Sprint("new", i))
		if len(b.known) != maxBuckets || b.known[fmt.Sprint("new", i)] == nil {
			t.Errorf("%d buckets are known, limit %d", len(b.known), maxBuckets)
		}
	}
}
