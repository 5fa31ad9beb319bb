package telemetry_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"ddiff/telemetry"
)

var update = flag.Bool("update", false, "write the tables of docs/telemetry.md")

// TestReference: docs/telemetry.md has the tables of the list of metrics.
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../docs/telemetry.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(data), "-run TestReference -update -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of metrics -->")
	if !begins || !ends {
		t.Fatalf("%s lacks the comments around its tables", page)
	}
	tables, err := telemetry.Reference()
	if err != nil {
		t.Fatal(err)
	}
	want := before + "-run TestReference -update -->\n" + tables + "<!-- end of metrics -->" + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Errorf("%s differs from the list of metrics; run: go test ./telemetry -run TestReference -update", page)
	}
}

// TestMetricsAreComplete: names are unique, labels are described and used, and only histograms have bounds.
func TestMetricsAreComplete(t *testing.T) {
	t.Parallel()
	described, used, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, l := range telemetry.Labels() {
		if described[string(l.Key)] || l.Values == "" {
			t.Errorf("label %s is described twice, or without values", l.Key)
		}
		described[string(l.Key)] = true
	}
	for _, m := range telemetry.Metrics() {
		inPrometheus, err := m.PrometheusName()
		if err != nil || names[inPrometheus] || m.Unit == "" || m.Description == "" {
			t.Errorf("%s: Prometheus name %s (%v), or its unit or description is missing", m.Name, inPrometheus, err)
		}
		names[inPrometheus] = true
		if (m.Kind == telemetry.KindHistogram) != (len(m.Bounds) > 0) || !slices.IsSorted(m.Bounds) {
			t.Errorf("%s is a %s with bounds %v", m.Name, m.Kind, m.Bounds)
		}
		for _, l := range m.Labels {
			used[string(l)] = true
			if !described[string(l)] {
				t.Errorf("label %s of %s is not described", l, m.Name)
			}
		}
	}
	for l := range described {
		if !used[l] {
			t.Errorf("no metric has the label %s", l)
		}
	}
}
