package telemetrytest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"ddiff/telemetry"
)

// own are the labels and values of metrics that Prometheus makes itself.
var own = map[string][]string{"up": {}, "ALERTS": {"alertname", "alertstate", "severity"}}

// targetLabels are the labels of all series: those of the process, and that of the cluster, which the chart sets.
var targetLabels = []string{"job", "instance", "ddiff_cluster"}

// exported describes a metric in Prometheus.
type exported struct {
	labels []string
	// closed are the values of labels with a short list.
	closed map[string][]string
}

// inPrometheus returns the series of ddiff by their names in Prometheus.
func inPrometheus(t *testing.T) map[string]exported {
	t.Helper()
	quoted := regexp.MustCompile("`([^`]+)`")
	page, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n| label | values |\n|---|---|\n")
	if !found {
		t.Fatal("docs/telemetry.md lacks the table of labels")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	values := map[string][]string{}
	for row := range strings.SplitSeq(table, "\n") {
		key, list, _ := strings.Cut(strings.TrimPrefix(row, "| `"), "` | ")
		if key == string(telemetry.TaskKey) || !strings.Contains(list, "`") {
			continue // the registry of operators has the tasks
		}
		for _, m := range quoted.FindAllStringSubmatch(list, -1) {
			values[inName(key)] = append(values[inName(key)], m[1])
		}
	}
	out := map[string]exported{}
	for _, m := range telemetry.Metrics() {
		name, err := m.PrometheusName()
		if err != nil {
			t.Fatal(err)
		}
		e := exported{labels: slices.Clone(targetLabels), closed: values}
		for _, k := range m.Labels {
			e.labels = append(e.labels, inName(string(k)))
		}
		if m.Kind != telemetry.KindHistogram {
			out[name] = e
			continue
		}
		out[name+"_sum"], out[name+"_count"] = e, e
		e.labels = append(slices.Clone(e.labels), "le")
		out[name+"_bucket"] = e
	}
	for name, l := range own {
		out[name] = exported{labels: slices.Concat(targetLabels, l)}
	}
	return out
}

// checkLeaders requires that a query counts the leader's gauges once while two coordinators export them: the innermost
// aggregation over coordinators is max or min.
func checkLeaders(query string) error {
	gauges := map[string]bool{}
	for _, m := range telemetry.Metrics() {
		if m.Source == telemetry.FromLeader && m.Kind == telemetry.KindGauge {
			name, err := m.PrometheusName()
			if err != nil {
				return err
			}
			gauges[name] = true
		}
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return err
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		v, ok := node.(*parser.VectorSelector)
		if !ok || !gauges[v.Name] {
			return nil
		}
		for _, above := range slices.Backward(path) {
			if a, ok := above.(*parser.AggregateExpr); ok {
				if a.Op != parser.MAX && a.Op != parser.MIN && !slices.Contains(a.Grouping, "instance") {
					err = fmt.Errorf("%s of %s counts twice while the leader changes", a.Op, v.Name)
				}
				break
			}
		}
		return nil
	})
	return err
}

// checkClusters requires that a query is about one cluster: every selector has a matcher.
func checkClusters(query string) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return err
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		v, ok := node.(*parser.VectorSelector)
		if ok && !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "ddiff_cluster" }) {
			err = fmt.Errorf("%s is that of all clusters", v.Name)
		}
		return nil
	})
	return err
}

// inName returns the name of a label in Prometheus.
func inName(key string) string { return strings.ReplaceAll(key, ".", "_") }

// checkQuery parses a query and compares its metrics, labels and label values with those of ddiff.
func checkQuery(series map[string]exported, query string) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return err
	}
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var known []string // labels of the metrics of the query
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			e, ok := series[v.Name]
			if !ok {
				report("no metric is called %q", v.Name)
				return nil
			}
			known = append(known, e.labels...)
			for _, m := range v.LabelMatchers {
				checkMatcher(e, v.Name, m, report)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var used []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			used = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				used = append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...)
			}
		}
		for _, l := range used {
			if !slices.Contains(known, l) {
				report("no metric of the query has the label %q", l)
			}
		}
		return nil
	})
	if len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return nil
}

// checkMatcher compares a matcher with the labels of its metric, and its alternatives with the values of the label.
func checkMatcher(e exported, metric string, m *labels.Matcher, report func(format string, args ...any)) {
	if m.Name == model.MetricNameLabel {
		return
	}
	if !slices.Contains(e.labels, m.Name) {
		report("metric %s has no label %q", metric, m.Name)
		return
	}
	closed, ok := e.closed[m.Name]
	if !ok {
		return
	}
	for value := range strings.SplitSeq(m.Value, "|") {
		// An empty value stands for a missing label.
		if value != "" && !slices.Contains(closed, value) {
			report("label %q of %s is never %q", m.Name, metric, value)
		}
	}
}
