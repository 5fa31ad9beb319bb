package repository

import "testing"

// The chart contains copies of files outside of its folder, which a chart cannot read.
func TestChartCopies(t *testing.T) {
	t.Parallel()
	for copied, original := range map[string]string{
		"charts/ddiff/files/nats-accounts.conf": "docs/security/nats-accounts.conf",
		"charts/ddiff/files/rules.yaml":         "deploy/prometheus/rules.yaml",
	} {
		if read(t, copied) != read(t, original) {
			t.Errorf("%s differs from %s; run `make chart-files`", copied, original)
		}
	}
}
