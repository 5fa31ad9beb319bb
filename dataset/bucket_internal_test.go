package dataset

import (
	"fmt"
	"testing"

	"ddiff/storage"
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

// The form of addresses is that of the address, or else that of the configuration.
func TestBucketAddressing(t *testing.T) {
	t.Parallel()
	b := &buckets{cfg: Config{S3: storage.S3Config{Addressing: storage.AddressingPath}}}
	for text, want := range map[string]storage.Addressing{
		"s3://bucket/k": storage.AddressingPath, "s3://bucket/k?path_style=false": storage.AddressingVirtualHost,
	} {
		a, err := Parse(text)
		must(t, err)
		if c, err := b.config(a); err != nil || c.Addressing != want {
			t.Errorf("%s: addressing %v, %v, want %v", text, c.Addressing, err, want)
		}
	}
}
