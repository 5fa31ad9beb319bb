package telemetrytest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// rule is an alert of deploy/prometheus/rules.yaml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// rules reads all alerts.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "../../deploy/prometheus/rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there is no rule")
	}
	return all
}

// TestRules: every alert parses and names metrics, labels and values of ddiff; docs/operations.md has a section for each alert and no other
// section; rules_test.yaml has both tests of each.
func TestRules(t *testing.T) {
	series := inPrometheus(t)
	heading := regexp.MustCompile(`(?m)^### (Ddiff\w+)$`)
	var sections []string
	for _, m := range heading.FindAllStringSubmatch(readFile(t, "../../docs/operations.md"), -1) {
		sections = append(sections, m[1])
	}
	var tests struct {
		Tests []struct {
			Name string `yaml:"name"`
		} `yaml:"tests"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "../../deploy/prometheus/rules_test.yaml")), &tests); err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		if err := checkQuery(series, r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if err := checkLeaders(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if err := checkClusters(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if r.For == "" || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
			t.Errorf("%s: for %q, severity %q: an alert has a time, and is critical or a warning", r.Alert, r.For, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", r.Alert)
		}
		if want := "docs/operations.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		fires, quiet := 0, 0
		for _, test := range tests.Tests {
			switch {
			case test.Name == r.Alert+" fires":
				fires++
			case strings.HasPrefix(test.Name, r.Alert+" does not fire: "):
				quiet++
			}
		}
		if fires == 0 || quiet == 0 {
			t.Errorf("%s: rules_test.yaml has %d tests in which it fires and %d in which it does not, want both", r.Alert, fires, quiet)
		}
	}
	if !slices.Equal(alerts, sections) {
		t.Errorf("docs/operations.md has the sections\n%q, want the alerts in their order\n%q", sections, alerts)
	}
}
