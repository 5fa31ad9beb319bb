package telemetry

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/regular"
)

// IgnoredVariables describes the OTEL_* variables whose values OpenTelemetry ignores because they are invalid, in a fixed
// order. It does not repeat values, which may be secrets. Start refuses the other invalid values.
func IgnoredVariables(environ func(string) string) []string {
	var out []string
	for _, v := range variables() {
		if value := environ(v.name); value != "" && !v.valid(value) {
			out = append(out, fmt.Sprintf("%s is not %s", v.name, v.want))
		}
	}
	return out
}

type variable struct {
	name, want string
	valid      func(value string) bool
}

// variables lists the variables with a syntax.
func variables() []variable {
	out := []variable{
		{"OTEL_SDK_DISABLED", "true or false", oneOf("true", "false")},
		{"OTEL_RESOURCE_ATTRIBUTES", "a list of KEY=VALUE", pairs},
		{"OTEL_TRACES_SAMPLER", "a sampler, such as always_on or traceidratio", oneOf("always_on", "always_off", "traceidratio",
			"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")},
		{"OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", func(value string) bool {
			x, err := strconv.ParseFloat(value, 64)
			return err == nil && x >= 0 && x <= 1
		}},
	}
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		prefix := "OTEL_EXPORTER_OTLP_" + signal
		out = append(out,
			variable{prefix + "ENDPOINT", "a URL, such as http://localhost:4318", address},
			variable{prefix + "HEADERS", "a list of KEY=VALUE with escaped values", headers},
			variable{prefix + "COMPRESSION", "gzip or none", oneOf("gzip", "none")},
			variable{prefix + "INSECURE", "true or false", oneOf("true", "false")},
			variable{prefix + "TIMEOUT", "a number of milliseconds", count})
	}
	for _, name := range []string{
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT",
	} {
		out = append(out, variable{name, "a number of milliseconds", count})
	}
	for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"} {
		out = append(out, variable{name, "a positive number", count})
	}
	return out
}

func oneOf(words ...string) func(string) bool {
	return func(value string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, strings.TrimSpace(value)) })
	}
}

func count(value string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	return err == nil && n > 0
}

func address(value string) bool {
	u, err := url.Parse(strings.TrimSpace(value))
	return err == nil && slices.Contains([]string{"http", "https", "unix"}, u.Scheme) && (u.Host != "" || u.Scheme == "unix")
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headers reports whether a value is a list of pairs with the names of headers and escaped values.
func headers(value string) bool {
	for pair := range strings.SplitSeq(strings.Trim(value, " ,"), ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(escaped); err != nil || !headerName.MatchString(strings.TrimSpace(key)) {
			return false
		}
	}
	return pairs(value)
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

// pairs reports whether a value is a list of pairs, separated by commas.
func pairs(value string) bool {
	for pair := range strings.SplitSeq(strings.Trim(value, " ,"), ",") {
		key, _, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return false
		}
	}
	return true
}
