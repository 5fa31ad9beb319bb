package main_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTelemetryRefusals: a trace file or a variable of OpenTelemetry that cannot be used ends the command with exit code 2
// and one line.
func TestTelemetryRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
	for _, c := range []struct {
		env   []string
		flags []string
		parts []string
	}{
		{nil, []string{"--trace-file", dir}, []string{"open trace file", dir}},
		{nil, []string{"--trace-file", filepath.Join(photograph("coffee"), "x")}, []string{"trace file", "not a directory"}},
		{[]string{"OTEL_METRICS_EXPORTER=nope"}, nil, []string{"OTEL_METRICS_EXPORTER"}},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=nope"}, nil, []string{"OTEL_EXPORTER_OTLP_"}},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere"}, nil, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE: open /nowhere"}},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE=/dev/zero"}, nil, []string{"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE: open /dev/zero"}},
		{[]string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=" + pipe}, nil, []string{"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: open " + pipe}},
	} {
		cmd := command(t, append(small("--images", photograph("coffee"), "--task", "hdr", "--out", filepath.Join(dir, "out")), c.flags...)...)
		cmd.Env = append(cmd.Env, c.env...)
		e := end(t, cmd)
		wantCode(t, e, 2)
		wantMessage(t, e, c.parts...)
		if n := strings.Count(e.stderr, "\n"); n != 1 {
			t.Errorf("%q %q: %d lines on standard error\n%v", c.env, c.flags, n, e)
		}
	}
}

// TestTelemetrySecrets: OpenTelemetry prints nothing of its own, which would have the values of headers.
func TestTelemetrySecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, want string }{
		{"OTEL_EXPORTER_OTLP_HEADERS=authorization=" + secret + "%zz", "OTEL_EXPORTER_OTLP_HEADERS is not"},
		{"OTEL_EXPORTER_OTLP_HEADERS=" + secret + "/=x", "OTEL_EXPORTER_OTLP_HEADERS is not"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=:" + secret, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not"},
	} {
		cmd := command(t, small("--images", photograph("coffee"), "--task", "hdr", "--steps", "3", "--out", filepath.Join(t.TempDir(), "out"))...)
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", c.env)
		e := end(t, cmd)
		wantCode(t, e, 0)
		wantMessage(t, e, c.want)
		wantNoSecret(t, e, "")
		if strings.Contains(e.stderr, ".go:") {
			t.Errorf("%s: a line of another program\n%v", c.env, e)
		}
	}
}
