package queue

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestForgedCounts: a negative count of passes would end a worker, and a huge number of attempts occupy it.
func TestForgedCounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "x": 0, "7": 7, "-1": 0, "9223372036854775807": maxCount, "9223372036854775808": 0, "-9223372036854775808": 0,
	} {
		if n := intHeader(nats.Header{headerPasses: {text}}, headerPasses); n != want {
			t.Errorf("%q is %d, want %d", text, n, want)
		}
	}
}
