package telemetry_test

import (
	"strings"
	"testing"

	"ddiff/telemetry"
)

// TestIgnoredVariables: a wrong value is named once, without the value, and right values are not.
func TestIgnoredVariables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ good, bad []string }{
		"OTEL_SDK_DISABLED":                   {[]string{"", "true", "FALSE"}, []string{"yes", "1"}},
		"OTEL_RESOURCE_ATTRIBUTES":            {[]string{"a=b", "a=b,c=d", "a="}, []string{"secret", "a=b,secret", "=secret"}},
		"OTEL_TRACES_SAMPLER":                 {[]string{"always_off", "traceidratio"}, []string{"sometimes"}},
		"OTEL_TRACES_SAMPLER_ARG":             {[]string{"0", "0.5", "1", "10e-2", "+0.5"}, []string{"1.5", "half", "NaN", "-1"}},
		"OTEL_EXPORTER_OTLP_ENDPOINT":         {[]string{"http://localhost:4318", "https://host/x"}, []string{"localhost:4318", "http://", "::secret"}},
		"OTEL_EXPORTER_OTLP_HEADERS":          {[]string{"authorization=Bearer x", "a=%20x,b=y="}, []string{"secret", "a=secret%zz", "secret/=x", "=secret"}},
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT":   {[]string{"10000"}, []string{"10s", "-1", "0"}},
		"OTEL_EXPORTER_OTLP_METRICS_INSECURE": {[]string{"true"}, []string{"2"}},
		"OTEL_EXPORTER_OTLP_COMPRESSION":      {[]string{"gzip", "none"}, []string{"zstd"}},
		"OTEL_BSP_SCHEDULE_DELAY":             {[]string{"500"}, []string{"soon"}},
		"OTEL_BSP_MAX_QUEUE_SIZE":             {[]string{"2048"}, []string{"many"}},
		"OTEL_METRIC_EXPORT_INTERVAL":         {[]string{"60000"}, []string{"1m"}},
	} {
		check := func(value string) []string {
			return telemetry.IgnoredVariables([]string{"HOME=/", name + "=" + value})
		}
		for _, value := range c.good {
			if got := check(value); len(got) != 0 {
				t.Errorf("%s=%q: %q", name, value, got)
			}
		}
		for _, value := range c.bad {
			if got := check(value); len(got) != 1 || !strings.HasPrefix(got[0], name+" is not ") || strings.Contains(got[0], "secret") {
				t.Errorf("%s=%q: %q", name, value, got)
			}
		}
	}
}
