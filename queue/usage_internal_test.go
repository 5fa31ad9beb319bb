package queue

import (
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		usage StreamUsage
		want  float64
	}{
		"no limits":      {StreamUsage{Messages: 5, Bytes: 5, MaxMessages: -1, MaxBytes: -1}, 0},
		"zero limits":    {StreamUsage{Messages: 5, Bytes: 5}, 0},
		"messages alone": {StreamUsage{Messages: 1, Bytes: 5, MaxMessages: 4}, 0.25},
		"bytes alone":    {StreamUsage{Messages: 5, Bytes: 1, MaxBytes: 2}, 0.5},
		"more messages":  {StreamUsage{Messages: 3, Bytes: 1, MaxMessages: 4, MaxBytes: 2}, 0.75},
		"more bytes":     {StreamUsage{Messages: 1, Bytes: 2, MaxMessages: 4, MaxBytes: 2}, 1},
	} {
		if got := tc.usage.Fill(); got != tc.want {
			t.Errorf("%s: fill %v, want %v", name, got, tc.want)
		}
	}
	if !(StreamUsage{Name: resultStream}).Results() || (StreamUsage{Name: workStream}).Results() {
		t.Error("another stream than that of the results has them")
	}
}

// The last lines of a log, as many as fit.
func TestTail(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]string{0: "", 1: "", 2: "cc", 4: "cc", 5: "bbb cc", 8: "bbb cc", 9: "aaaa bbb cc", 100: "aaaa bbb cc"} {
		if got := strings.Join(tail([]string{"aaaa", "bbb", "cc"}, limit), " "); got != want {
			t.Errorf("%d bytes: %q, want %q", limit, got, want)
		}
	}
}
