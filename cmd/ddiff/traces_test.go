package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tracedSpan is a span of a trace file with its place in its trace.
type tracedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Links                               []struct{ TraceID, SpanID string }
	Attributes                          []struct {
		Key   string
		Value json.RawMessage
	}
}

// TestTraces: a run has one trace for the campaign, with one root, and one for each attempt, linked to the campaign's; every
// parent is exported; every span of an attempt names its campaign, item, attempt, worker and device.
func TestTraces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	out := filepath.Join(t.TempDir(), "out")
	wantCode(t, restore(t, "--images", photographs(t, "coffee", "rocket"), "--task", "hdr", "--steps", "12", "--batch", "2", "--out", out, "--trace-file", path), 0)
	spans, ids, campaigns := readSpans[tracedSpan](t, path), map[string]bool{}, map[string]bool{}
	for _, s := range spans {
		if ids[s.SpanID] {
			t.Errorf("two spans have the id %s", s.SpanID)
		}
		ids[s.SpanID] = true
		if s.Name == "campaign" {
			campaigns[s.TraceID] = true
		}
	}
	if len(campaigns) != 1 {
		t.Fatalf("%d traces of campaigns, want 1", len(campaigns))
	}
	names, items := map[string]int{}, map[string]bool{}
	for _, s := range spans {
		if s.ParentSpanID != "" && !ids[s.ParentSpanID] {
			t.Errorf("the parent of span %s is not exported", s.Name)
		}
		if s.Name == "process item" {
			items[s.TraceID] = true
			if len(s.Links) != 1 || !campaigns[s.Links[0].TraceID] || !ids[s.Links[0].SpanID] {
				t.Errorf("an attempt has the links %v, want one to the campaign", s.Links)
			}
		}
	}
	for _, s := range spans {
		if campaigns[s.TraceID] {
			names[s.Name]++
			continue
		}
		if !items[s.TraceID] {
			continue // a call outside of an item
		}
		names["item "+s.Name]++
		have := map[string]bool{}
		for _, a := range s.Attributes {
			have[a.Key] = true
		}
		for _, key := range []string{"ddiff.campaign", "ddiff.item.id", "ddiff.attempt", "ddiff.worker", "ddiff.device"} {
			if !have[key] {
				t.Errorf("span %s of an attempt lacks %s", s.Name, key)
			}
		}
	}
	for name, want := range map[string]int{
		"campaign": 1, "open": 1, "shard": 1, "publish": 1,
		"item process item": 2, "item fetch": 2, "item measure": 2, "item restore": 2, "item score": 2, "item write": 2, "item settle": 2,
	} {
		if names[name] != want {
			t.Errorf("%d spans %s, want %d; all: %v", names[name], name, want, names)
		}
	}
	if names["report"] == 0 { // the report grows with the results
		t.Errorf("no span report; all: %v", names)
	}
}

// wantParents checks that the parents of all spans in the output of a process are among them.
func wantParents(t *testing.T, output string) {
	t.Helper()
	type printed struct {
		Name                string
		SpanContext, Parent struct {
			SpanID string
			Remote bool
		}
	}
	var spans []printed
	ids := map[string]bool{"0000000000000000": true}
	for line := range strings.Lines(output) {
		var s printed
		if !strings.HasPrefix(line, `{"Name":`) {
			continue
		}
		must(t, json.Unmarshal([]byte(line), &s))
		spans, ids[s.SpanContext.SpanID] = append(spans, s), true
	}
	for _, s := range spans {
		if !s.Parent.Remote && !ids[s.Parent.SpanID] {
			t.Errorf("the parent of span %s is not exported", s.Name)
		}
	}
	if len(spans) == 0 {
		t.Error("no spans")
	}
}

// TestLeasesOfRun: the process of ddiff run reports the items that it holds.
func TestLeasesOfRun(t *testing.T) {
	t.Parallel()
	p := beginWith(t, []string{"OTEL_METRICS_EXPORTER=console", "OTEL_METRIC_EXPORT_INTERVAL=50"},
		"--images", photographs(t, "coffee"), "--task", "hdr", "--steps", "1000", "--out", filepath.Join(t.TempDir(), "out"))
	p.wait(t, &p.stdout, `"Name":"ddiff.leases"`, 1)
	p.signal(t, syscall.SIGTERM)
	<-p.done
}

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

// TestTelemetryOfRestore: a picture alone has no spans, and those of a campaign begin once.
func TestTelemetryOfRestore(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	photo := filepath.Join(dir, "a.png")
	write(t, photo, grey(16))
	spans := []string{"restore", photo, "--task", "denoise", "--steps", "2", "--threads", "1", "--unchecked", "--device", "cpu", "--trace-file", filepath.Join(dir, "spans")}
	e := ddiff(t, spans...)
	wantCode(t, e, 2)
	wantMessage(t, e, "--trace-file needs --results")
	e = ddiff(t, "restore", photo, "--task", "denoise", "--stage-timeout", "1m")
	wantCode(t, e, 2)
	wantMessage(t, e, "--stage-timeout needs --results")
	cmd := command(t, append(spans, "--results", filepath.Join(dir, "results"))...)
	cmd.Env = append(cmd.Env, "OTEL_TRACES_SAMPLER_ARG=2", "OTEL_TRACES_SAMPLER=traceidratio")
	e = end(t, cmd)
	wantCode(t, e, 0)
	if n := strings.Count(e.stderr, "ignored variables"); n != 1 || len(read(t, filepath.Join(dir, "spans"))) == 0 {
		t.Errorf("%d lines on ignored variables: %v", n, e)
	}
}

// TestTelemetryOfSession: a session has none, so that nothing but answers is on its standard output, and no variable ends it.
func TestTelemetryOfSession(t *testing.T) {
	t.Parallel()
	cmd := command(t, "session", "--device", "cpu", "--threads", "1")
	cmd.Env = append(cmd.Env, "OTEL_TRACES_EXPORTER=console", "OTEL_METRICS_EXPORTER=nope")
	e := end(t, cmd)
	wantCode(t, e, 0)
	if !strings.HasPrefix(e.stdout, `{"ready":true,`) || strings.Count(e.stdout, "\n") != 1 || e.stderr != "" {
		t.Error(e)
	}
}

// TestTelemetrySecrets: OpenTelemetry prints nothing of its own, which would have the values of headers.
func TestTelemetrySecrets(t *testing.T) {
	skipLong(t)
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
