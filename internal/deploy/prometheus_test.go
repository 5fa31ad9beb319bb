package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Prometheus accepts its configuration with the rules beside it, as compose.yaml mounts them.
func TestPrometheusConfiguration(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool (Debian: prometheus)")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(read(t, "deploy/prometheus/rules.yaml")), 0o644))
	check := func(text string) (string, error) {
		must(t, os.WriteFile(config, []byte(text), 0o644))
		out, err := exec.CommandContext(t.Context(), promtool, "check", "config", config).CombinedOutput()
		return string(out), err
	}
	text := read(t, "deploy/compose/prometheus.yaml")
	if out, err := check(text); err != nil || !strings.Contains(out, "SUCCESS") || strings.Contains(out, "FAILED") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := check(strings.Replace(text, "static_configs", "static_config", 1)); err == nil {
		t.Errorf("a typing error is accepted:\n%s", out)
	}
}

// Prometheus reads every process of the cluster, at the address of its --metrics-listen.
func TestPrometheusTargets(t *testing.T) {
	text := read(t, "deploy/compose/prometheus.yaml")
	for _, name := range []string{"coordinator", "worker-1", "worker-2"} {
		listen := ""
		command := project(t).Services[name].Command
		for i, a := range command {
			if a == "--metrics-listen" {
				listen = command[i+1]
			}
		}
		if target := fmt.Sprint(name, listen); listen == "" || !strings.Contains(text, target) {
			t.Errorf("Prometheus does not read %s", target)
		}
	}
}

// The collector accepts its configuration. make deploy-test builds it and names it in DDIFF_COLLECTOR.
func TestCollectorConfiguration(t *testing.T) {
	collector := os.Getenv("DDIFF_COLLECTOR")
	if collector == "" {
		t.Skip("there is no collector: make deploy-test")
	}
	text := read(t, "deploy/compose/collector.yaml")
	validate := func(text string) (string, error) {
		file := filepath.Join(t.TempDir(), "collector.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o644))
		out, err := exec.CommandContext(t.Context(), collector, "validate", "--config", file).CombinedOutput()
		return string(out), err
	}
	if out, err := validate(text); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, change := range [][2]string{{"limit_mib", "limit_mb"}, {"exporters: [otlp]", "exporters: [jaeger]"}, {"check_interval: 1s", "check_interval: 0s"}} {
		if out, err := validate(strings.Replace(text, change[0], change[1], 1)); err == nil {
			t.Errorf("%s is accepted:\n%s", change[1], out)
		}
	}
}
