package testbed

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/passport"
	"ddiff/restore/item"
)

// TestAttackPrecision lets a worker whose default is another precision join two campaigns midway, as the only one that is left. The campaign that
// fixes a precision has no result in another one. In the campaign that fixes none, each result and its passport state the precision,
// results are not replaced, the summary counts both, and verify and a comparison of both campaigns say so.
func TestAttackPrecision(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	coordinator(t, c)
	first := worker(t, c, "--batch", "1")
	const each = 12
	method := "steps: 10\nruns: 2"
	fixed := submit(t, c, campaignFile(t, "fixed", method, "precision: float32"), "--canary", "0")
	free := submit(t, c, campaignFile(t, "free", method), "--canary", "0")
	settled(t, c, fixed, 1)
	settled(t, c, free, 1)
	code, err := first.Stop(time.Minute)
	must(t, err)
	if code != 0 {
		t.Errorf("the worker ended with code %d", code)
	}
	before := precisionsOf(t, c, free)
	worker(t, c, "--batch", "1", "--precision", "float16")
	wantFinished(t, c, fixed, each)
	wantFinished(t, c, free, each)
	for id, p := range precisionsOf(t, c, fixed) {
		if p != "float32" {
			t.Errorf("result %s of the campaign in float32 is in %s", id, p)
		}
	}
	after, counts := precisionsOf(t, c, free), map[string]int{}
	for id, p := range after {
		counts[p]++
		if old, ok := before[id]; ok && old != p {
			t.Errorf("result %s in %s was replaced by one in %s", id, old, p)
		}
	}
	if counts["float32"] == 0 || counts["float16"] == 0 || len(counts) != 2 {
		t.Fatalf("the attack has mixed nothing: %v", counts)
	}
	var summary struct {
		Rows []struct{ Precisions map[string]int }
	}
	must(t, json.Unmarshal(read(t, filepath.Join(c.Results(free), "summary.json")), &summary))
	told := map[string]int{}
	for _, row := range summary.Rows {
		for p, n := range row.Precisions {
			told[p] += n
		}
	}
	if told["float32"] != counts["float32"] || told["float16"] != counts["float16"] {
		t.Errorf("the summary counts %v, the results are %v", told, counts)
	}
	wantCode(t, ask(t, c, "verify", c.Results(free)), 0)
	e := end(t, command(t, "compare", c.Results(fixed), c.Results(free)))
	if !strings.Contains(e.stdout+e.stderr, "precision") || !strings.Contains(e.stdout+e.stderr, "float16") {
		t.Errorf("a comparison names no precision: %v", e)
	}
}

// precisionsOf returns the precision of each result of an output, by the item's identity. That of the passport is the same.
func precisionsOf(t *testing.T, c *Cluster, output string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.Results(output), "items", "*", item.FileResult))
	must(t, err)
	all := map[string]string{}
	for _, path := range found {
		var r item.Result
		must(t, json.Unmarshal(read(t, path), &r))
		p, err := passport.Read(read(t, filepath.Join(filepath.Dir(path), item.FileRestored)))
		must(t, err)
		if p.Runtime.Precision != r.Runtime.Precision || r.Runtime.Precision == "" {
			t.Errorf("%s is in %q, its passport says %q", path, r.Runtime.Precision, p.Runtime.Precision)
		}
		all[r.Item.ID] = string(r.Runtime.Precision)
	}
	return all
}
