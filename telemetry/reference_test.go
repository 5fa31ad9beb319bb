package telemetry

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

var update = flag.Bool("update", false, "write the table of docs/telemetry.md")

// reference returns the table of all metrics as Markdown, for docs/telemetry.md.
func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprint(&b, "| metric | in Prometheus | kind, unit | labels | from | description |\n|---|---|---|---|---|---|\n")
	for _, m := range Metrics() {
		name, err := m.PrometheusName()
		must(t, err)
		fmt.Fprintf(&b, "| `%s` | `%s` | %s, `%s` | %s | %s | %s |\n", m.Name, name, m.Kind, m.Unit, keys(m.Labels), m.Source, m.Description)
	}
	return b.String()
}

func keys(labels []attribute.Key) string {
	var names []string
	for _, k := range labels {
		names = append(names, "`"+string(k)+"`")
	}
	return strings.Join(names, ", ")
}

// TestReference: docs/telemetry.md has the table of the list of metrics.
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../docs/telemetry.md"
	data, err := os.ReadFile(page)
	must(t, err)
	before, rest, begins := strings.Cut(string(data), "-run TestReference -update -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of metrics -->")
	if !begins || !ends {
		t.Fatalf("%s lacks the comments around its table", page)
	}
	want := before + "-run TestReference -update -->\n" + reference(t) + "<!-- end of metrics -->" + after
	if *update {
		must(t, os.WriteFile(page, []byte(want), 0o644))
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
	page, err := os.ReadFile("../docs/telemetry.md")
	must(t, err)
	_, rest, found := strings.Cut(string(page), "\n| label | values |\n|---|---|\n")
	if !found {
		t.Fatal("docs/telemetry.md lacks the table of labels")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		key, values, _ := strings.Cut(strings.TrimPrefix(row, "| `"), "` | ")
		if described[key] || len(values) < len("x |") {
			t.Errorf("label %s is described twice, or without values", key)
		}
		described[key] = true
	}
	for _, m := range Metrics() {
		inPrometheus, err := m.PrometheusName()
		if err != nil || names[inPrometheus] || m.Unit == "" || m.Description == "" {
			t.Errorf("%s: Prometheus name %s (%v), or its unit or description is missing", m.Name, inPrometheus, err)
		}
		names[inPrometheus] = true
		if (m.Kind == KindHistogram) != (len(m.Bounds) > 0) || !slices.IsSorted(m.Bounds) {
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
