package testbed

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
)

// logLine is a line of a log with --log-format json. docs/operations.md describes the keys.
type logLine struct {
	Time                                    time.Time
	Level, Msg                              string
	Coordinator, Worker, Campaign, Item, ID string
	Task, Reason                            string
	TraceID, SpanID                         string
	Attempt                                 int
	ExitCode                                *int
}

// parseLog reads every line of a process's log.
func parseLog(t *testing.T, p *Process) (lines []logLine) {
	t.Helper()
	for text := range strings.Lines(string(read(t, p.LogFile()))) {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatalf("%s: %v: %s", p.Name, err, text)
		}
		for key, name := range map[string]string{"trace_id": "TraceID", "span_id": "SpanID", "exit_code": "ExitCode"} {
			if value, ok := fields[key]; ok {
				fields[name] = value
			}
		}
		data, err := json.Marshal(fields)
		must(t, err)
		var line logLine
		must(t, json.Unmarshal(data, &line))
		if line.Time.IsZero() || line.Level == "" || line.Msg == "" {
			t.Errorf("%s: a line without time, level or msg: %s", p.Name, text)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		t.Errorf("%s: an empty log", p.Name)
	}
	return lines
}

// TestClusterLogs runs a campaign with a damaged image on processes that log JSON, with the permissions of docs/security. It
// reads every line, and then the lines of single items through ddiff logs after the worker has ended.
func TestClusterLogs(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{NATS: NATSOptions{Secure: true}})
	lead, err := c.AddCoordinator(t.Context(), "--nats-wait", "30s", "--log-format", "json")
	must(t, err)
	dir := photographs(t, "chelsea", "coffee")
	whole := read(t, photograph("rocket"))
	write(t, filepath.Join(dir, "damaged.png"), whole[:len(whole)/2])
	file := filepath.Join(t.TempDir(), "logged.yaml")
	write(t, file, fmt.Appendf(nil, "name: logged\ndataset: {path: %q, size: 64}\ntasks: [super_resolution]\nsteps: 20\nattempts: 2\n", dir))
	w, err := c.AddWorker(t.Context(), "--nats-wait", "30s", "--log-format", "json", "--batch", "1")
	must(t, err)
	id := submit(t, c, file, "--canary", "0")
	e := ask(t, c, "status", "--watch", id)
	if want := "done=2 failed=1 dead=0 lost=0\n"; e.code != 3 || e.stdout != want {
		t.Fatalf("want %q\n%v\n%s", want, e, w.Log())
	}
	_, err = w.Stop(20 * time.Second)
	must(t, err)

	results, err := Results(c.Results(id))
	must(t, err)
	traces := map[string]string{}
	for _, r := range results {
		traces[r.Item.ID] = r.TraceID
	}
	e = ask(t, c, "status", id, "--json")
	var status struct {
		Status struct {
			TraceID string `json:"trace_id"`
		}
	}
	must(t, json.Unmarshal([]byte(e.stdout), &status))
	if len(status.Status.TraceID) != 32 {
		t.Errorf("ddiff status --json has the trace %q", status.Status.TraceID)
	}
	for _, line := range parseLog(t, lead) {
		if line.Coordinator != lead.Name {
			t.Errorf("a line of the coordinator without its name: %+v", line)
		}
		if line.Campaign == id && line.Msg == "campaign" && line.TraceID != status.Status.TraceID {
			t.Errorf("trace %q in a line of the campaign, %q in its status", line.TraceID, status.Status.TraceID)
		}
	}
	items := map[string][]string{} // messages by identity
	failed := ""
	logged := parseLog(t, w)
	if last := logged[len(logged)-1]; last.Msg != "ended" || last.ExitCode == nil || *last.ExitCode != 0 {
		t.Errorf("the last line of a stopped worker: %+v", last)
	}
	for _, line := range logged {
		if line.Worker != w.Name {
			t.Errorf("a line of the worker without its name: %+v", line)
		}
		if line.Item == "" || line.ID == record.IDPreflight {
			continue
		}
		items[line.ID] = append(items[line.ID], line.Msg)
		if line.Campaign != id || len(line.ID) != 64 || line.Task != "super_resolution" || line.Attempt < 1 || len(line.TraceID) != 32 || len(line.SpanID) != 16 {
			t.Errorf("a line about an item lacks a key: %+v", line)
		}
		if line.Item == "damaged" {
			failed = line.ID
		} else if traces[line.ID] != line.TraceID {
			t.Errorf("item %s: trace %s in the log, %s in the result", line.Item, line.TraceID, traces[line.ID])
		}
	}
	if len(items) != 3 || failed == "" {
		t.Fatalf("lines about items: %v", items)
	}
	for id := range traces {
		if want := []string{"leased item", "finished item"}; !slices.Equal(items[id], want) {
			t.Errorf("messages about a restored item: %q, want %q", items[id], want)
		}
	}

	attempts := func(args ...string) (all []record.AttemptLog) {
		t.Helper()
		e := ask(t, c, append([]string{"logs", "--json", id}, args...)...)
		wantCode(t, e, 0)
		for line := range strings.Lines(e.stdout) {
			var a record.AttemptLog
			must(t, json.Unmarshal([]byte(line), &a))
			all = append(all, a)
			t.Logf("%s: attempt %d %s, %d bytes in %d lines: %s", a.Name, a.Attempt, a.Outcome, len(strings.Join(a.Lines, "")), len(a.Lines), a.Reason)
		}
		return all
	}
	all := attempts()
	if len(all) == 0 || all[len(all)-1].Outcome != "failed" {
		t.Fatalf("records of the campaign: %+v", all)
	}
	for _, a := range all {
		if a.ID != failed || a.Worker != w.Name || a.Reason == "" || !strings.Contains(strings.Join(a.Lines, "\n"), "reason=") {
			t.Errorf("record %+v", a)
		}
	}
	done := ""
	for id := range traces {
		done = id
	}
	if got := attempts(done[:20]); len(got) != 1 || got[0].ID != done || got[0].Outcome != "done" || got[0].TraceID != traces[done] ||
		len(got[0].Lines) != 1 || !strings.Contains(got[0].Lines[0], `level=INFO msg="leased item"`) {
		t.Errorf("records of a restored item: %+v", got)
	}
	e = ask(t, c, "logs", id, failed[:12])
	wantCode(t, e, 0)
	if !strings.Contains(e.stdout, "outcome=failed") || !strings.Contains(e.stdout, `level=ERROR msg="item cannot be restored"`) {
		t.Errorf("the text form: %v", e)
	}
	for _, args := range [][]string{{"logs", id, "ffffffffffffffff"}, {"logs", "unknown-12345678"}, {"logs", id, ""}, {"logs", id, "a/b"}} {
		e := ask(t, c, args...)
		wantCode(t, e, 2)
		if e.stdout != "" {
			t.Errorf("%v prints %q", args, e.stdout)
		}
	}
	// The results verify, and contain the lines.
	wantCode(t, end(t, command(t, "verify", c.Results(id))), 0)

	code, err := lead.Stop(20 * time.Second)
	if err != nil || code != 0 {
		t.Errorf("coordinator: code %d, %v", code, err)
	}
	e = ask(t, c, "logs", id)
	wantCode(t, e, 9)
	wantMessage(t, e, "the server does not answer")
}
