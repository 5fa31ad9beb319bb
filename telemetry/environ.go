package telemetry

import (
	"fmt"
	"regexp"
	"strings"

	"ddiff/internal/regular"
)

// number is a positive number.
const number = ` *0*[1-9][0-9]* *`

// matching returns a check of values by a pattern.
func matching(pattern string) func(value string) bool {
	return regexp.MustCompile("(?s)^(" + pattern + ")$").MatchString
}

// IgnoredVariables describes the variables of an environment, as of [os.Environ], whose values OpenTelemetry ignores because they are
// invalid. It does not repeat values, which may be secrets. Start refuses the other invalid values.
func IgnoredVariables(environ []string) []string {
	// The syntax: names, what their value is, and the check of a value.
	variables := []struct {
		name, want string
		valid      func(value string) bool
	}{
		{"SDK_DISABLED", "true or false", matching(` *(?i:true|false) *`)},
		{"RESOURCE_ATTRIBUTES", "a list of KEY=VALUE", matching(`[ ,]*( *[^=, ][^=,]*=[^,]*(,|$))+[ ,]*`)},
		{"TRACES_SAMPLER", "a sampler, such as always_on or traceidratio", matching(` *(?i:(parentbased_)?(always_on|always_off|traceidratio)) *`)},
		{"TRACES_SAMPLER_ARG", "a number from 0 to 1", func(value string) bool { _, ok := ratioOf(value); return ok }},
		{"EXPORTER_OTLP_(TRACES_|METRICS_)?ENDPOINT", "a URL, such as http://localhost:4318", matching(` *(?i:https?://[^/?#]+|unix:).*`)},
		{"EXPORTER_OTLP_(TRACES_|METRICS_)?HEADERS", "a list of KEY=VALUE with escaped values",
			matching("[ ,]*( *[A-Za-z0-9!#$%&'*+.^_`|~-]+ *=([^,%]|%[0-9A-Fa-f]{2})*(,|$))+[ ,]*")},
		{"EXPORTER_OTLP_(TRACES_|METRICS_)?COMPRESSION", "gzip or none", matching(` *(?i:gzip|none) *`)},
		{"EXPORTER_OTLP_(TRACES_|METRICS_)?INSECURE", "true or false", matching(` *(?i:true|false) *`)},
		{"EXPORTER_OTLP_(TRACES_|METRICS_)?TIMEOUT|BSP_(SCHEDULE_DELAY|EXPORT_TIMEOUT)|METRIC_EXPORT_(INTERVAL|TIMEOUT)", "a number of milliseconds", matching(number)},
		{"BSP_MAX_(QUEUE_SIZE|EXPORT_BATCH_SIZE)", "a positive number", matching(number)},
	}
	var out []string
	for _, v := range variables {
		named := matching("OTEL_(" + v.name + ")")
		for _, variable := range environ {
			if name, value, _ := strings.Cut(variable, "="); value != "" && named(name) && !v.valid(value) {
				out = append(out, fmt.Sprintf("%s is not %s", name, v.want))
			}
		}
	}
	return out
}

// checkFiles checks the files that variables name, which OpenTelemetry reads without a limit.
func checkFiles(environ func(string) string) error {
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		for _, kind := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			name := "OTEL_EXPORTER_OTLP_" + signal + kind
			if path := environ(name); path != "" {
				if _, err := regular.Read(path, regular.MaxConfigBytes); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return nil
}
