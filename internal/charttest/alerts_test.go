package charttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"
)

// rulesOf renders the alerts of a release in a namespace.
func rulesOf(t *testing.T, values map[string]any, space string) string {
	t.Helper()
	files, err := renderIn(loadChart(t), values, space)
	must(t, err)
	all, err := objects(files)
	must(t, err)
	spec, _, err := unstructured.NestedMap(find(t, all, "PrometheusRule", "-ddiff").Object, "spec")
	must(t, err)
	data, err := sigsyaml.Marshal(spec)
	must(t, err)
	return string(data)
}

// clusterOf is the label ddiff_cluster of a release.
func clusterOf(space string) string { return space + "/" + release + "-ddiff" }

// working are the series of a cluster that works.
const working = `
      - {series: 'up{job="ddiff-worker",instance="w1"}', values: '1x500'}
      - {series: 'ddiff_leader{job="ddiff-coordinator",instance="c1"}', values: '1x500'}
      - {series: 'ddiff_store_available{job="ddiff-coordinator",instance="c1"}', values: '1x500'}
      - {series: 'ddiff_stream_fill_ratio{job="ddiff-coordinator",instance="c1",stream="DDIFF_RESULT"}', values: '0.1x500'}
      - {series: 'ddiff_queue_lag{job="ddiff-coordinator",instance="c1",pool="default"}', values: '8x500'}
      - {series: 'ddiff_queue_in_flight{job="ddiff-coordinator",instance="c1",campaign="a-1"}', values: '8x500'}
      - {series: 'ddiff_workers{job="ddiff-coordinator",instance="c1",pool="default",state="busy"}', values: '2x500'}
      - {series: 'ddiff_campaign_items{job="ddiff-coordinator",instance="c1",campaign="a-1",state="done"}', values: '0+100x500'}
      - {series: 'ddiff_campaign_items{job="ddiff-coordinator",instance="c1",campaign="a-1",state="failed"}', values: '0x500'}
      - {series: 'ddiff_ledger_items_total{job="ddiff-coordinator",instance="c1",outcome="done"}', values: '0+100x500'}
      - {series: 'ddiff_ledger_items_total{job="ddiff-coordinator",instance="c1",outcome="failed"}', values: '0x500'}
      - {series: 'ddiff_leases{job="ddiff-worker",instance="w1"}', values: '4x500'}
      - {series: 'ddiff_steps_total{job="ddiff-worker",instance="w1"}', values: '0+1000x500'}
      - {series: 'ddiff_solver_time_seconds_total{job="ddiff-worker",instance="w1"}', values: '0+55x500'}
      - {series: 'ddiff_redeliveries_total{job="ddiff-worker",instance="w1"}', values: '0x500'}
      - {series: 'ddiff_store_requests_total{job="ddiff-worker",instance="w1",operation="put",error_type=""}', values: '0+1000x500'}
`

// within gives all series and all expected alerts of a test of rules the label of a cluster.
func within(cluster, text string) string {
	for _, first := range []string{`{job="`, `{alertname="`} {
		text = strings.ReplaceAll(text, first, fmt.Sprintf(`{ddiff_cluster=%q,%s`, cluster, first[1:]))
	}
	return text
}

// TestAlertsOfReleases: promtool runs the tests of deploy/prometheus for a release while another one works. Each alert is that of its
// release only, with the rules of both releases and with those of deploy/prometheus.
func TestAlertsOfReleases(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool (Debian: prometheus)")
	}
	dir := t.TempDir()
	tests, err := os.ReadFile("../../deploy/prometheus/rules_test.yaml")
	must(t, err)
	plain, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	must(t, err)
	for name, text := range map[string]string{
		"first.yaml": rulesOf(t, example(t, "pools"), "first"), "second.yaml": rulesOf(t, example(t, "pools"), "second"), "rules.yaml": string(plain),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run := func(rules, text string) (string, error) {
		file := filepath.Join(dir, "tests.yaml")
		must(t, os.WriteFile(file, []byte(strings.Replace(text, "[rules.yaml]", "["+rules+"]", 1)), 0o644))
		out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput()
		return string(out), err
	}
	const both = "first.yaml, second.yaml"
	for _, c := range [][3]string{{both, "first", "second"}, {"rules.yaml", "second", "first"}} {
		rules, own, other := c[0], clusterOf(c[1]), clusterOf(c[2])
		beside := "    input_series:" + within(other, working)
		text := strings.ReplaceAll(within(own, string(tests)), "    input_series:\n", beside)
		if rules == both { // the release itself knows that it should be there
			text += "  - name: no process of a release is there\n    interval: 1m\n" + beside + "    promql_expr_test:\n" +
				"      - expr: ALERTS{alertstate=\"firing\"}\n        eval_time: 9m\n" +
				within(own, "        exp_samples: [{labels: 'ALERTS{alertname=\"DdiffNoLeader\",alertstate=\"firing\",severity=\"critical\"}', value: 1}]\n")
		}
		if out, err := run(rules, text); err != nil {
			t.Errorf("%s, alerts of %s beside %s: %v\n%s", rules, own, other, err, out)
		}
		// An alert of the wrong release is noticed.
		few := text[:strings.Index(text, "  - name: DdiffStoreUnavailable fires")]
		wrong := strings.ReplaceAll(few, fmt.Sprintf(`ALERTS{ddiff_cluster=%q`, own), fmt.Sprintf(`ALERTS{ddiff_cluster=%q`, other))
		if out, err := run(rules, wrong); err == nil {
			t.Errorf("%s: alerts of %s pass as those of %s\n%s", rules, own, other, out)
		}
	}
}

// An alert has the address of its section, if the release knows where the page is.
func TestRunbooks(t *testing.T) {
	values := example(t, "pools")
	const base = "runbook_url: https://git.example.org/ddiff/docs/operations.md#ddiff"
	rules := rulesOf(t, values, namespace)
	if n := strings.Count(rules, "alert: "); n < 20 || strings.Count(rules, base) != n || strings.Count(rules, "runbook_url") != n {
		t.Errorf("%d alerts, %d addresses", n, strings.Count(rules, base))
	}
	values["metrics"].(map[string]any)["prometheusRule"] = map[string]any{"enabled": true}
	if rules := rulesOf(t, values, namespace); strings.Contains(rules, "runbook_url") || strings.Contains(rules, `ddiff_cluster=~`) {
		t.Error("alerts without a page have addresses, or they are those of every cluster")
	}
}
