package testbed

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestScale publishes five thousand rows and runs fifty simulated workers. The bounds are far from
// the measured figures: they detect defects, not slow machines.
func TestScale(t *testing.T) {
	skipLong(t)
	var out bytes.Buffer
	must(t, runScale(t.Context(), quick(scaleOptions{program: program, keep: t.TempDir(), out: &out})))
	t.Logf("\n%s", out.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	m := regexp.MustCompile(`^items=(\d+) items_per_s=(\d+) rss_mib=(\d+) busy=(\d\.\d\d) p50_ms=(\d+) p99_ms=(\d+) idle_ratio=(\d\.\d\d) campaign_mib=(-?\d+\.\d) takeover_s=(\d+\.\d)$`).
		FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		t.Fatalf("the last line is %q", lines[len(lines)-1])
	}
	for i, bound := range []struct{ low, high float64 }{{5_000, 5_000}, {200, 1e7}, {10, 256}, {0.3, 1}, {0, 2000}, {0, 20_000}, {0.5, 2}, {-3, 3}, {0, 60}} {
		got, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil || got < bound.low || got > bound.high {
			t.Errorf("number %d of the last line is %s, want %v to %v: %s", i+1, m[i+1], bound.low, bound.high, m[0])
		}
	}
}
