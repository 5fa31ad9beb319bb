package deploy

import (
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
	if out, err := check(strings.Replace(text, "honor_labels", "honour_labels", 1)); err == nil {
		t.Errorf("a typing error is accepted:\n%s", out)
	}
}
