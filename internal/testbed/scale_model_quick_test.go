package testbed

import (
	"bytes"
	"testing"
)

// TestScaleModel runs twenty campaigns with a hundred simulated workers.
func TestScaleModel(t *testing.T) {
	skipLong(t)
	var out bytes.Buffer
	must(t, runModel(t.Context(), small(modelOptions{program: program, keep: t.TempDir(), out: &out})))
	t.Logf("\n%s", out.String())
	last := lastLine(out.String())
	for name, want := range map[string]int{"campaigns": 20, "items": 2000, "workers": 100} {
		if got := count(last, name); got != want {
			t.Errorf("%s=%d, want %d: %s", name, got, want, last)
		}
	}
	for _, name := range []string{"items_per_s", "rss_mib", "server_mib"} {
		if count(last, name) < 1 {
			t.Errorf("%s is missing: %s", name, last)
		}
	}
}
