package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// TestSubmittedBefore: the line of a second submission names the state of the campaign, and the command that continues it.
func TestSubmittedBefore(t *testing.T) {
	t.Parallel()
	recalled := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		phase    record.Phase
		wanted   record.Wanted
		recalled time.Time
		want     string
	}{
		{record.PhaseRunning, record.WantRun, time.Time{}, "now running"},
		{record.PhaseRunning, record.WantRun, recalled, "now running"},
		{record.PhaseRunning, record.WantCancel, time.Time{}, "now running, cancel requested"},
		{record.PhaseRunning, record.WantPause, time.Time{}, "now running; continue it with: ddiff resume night-12345678"},
		{record.PhasePaused, record.WantPause, time.Time{}, "now paused; continue it with: ddiff resume night-12345678"},
		{record.PhasePaused, record.WantRun, time.Time{}, "now paused, resume requested"},
		{record.PhaseFinished, record.WantRun, time.Time{}, "now finished; run failed or dead items again with: ddiff retry night-12345678 --failed --dead"},
		{record.PhaseFinished, record.WantRun, recalled, "now finished, back from the archive; run failed or dead items again with: ddiff retry night-12345678 --failed --dead"},
		{record.PhaseCancelled, record.WantCancel, recalled, "now cancelled, back from the archive; continue it with: ddiff resume night-12345678"},
		{record.PhaseCancelled, record.WantRun, time.Time{}, "now cancelled, resume requested"},
		{record.PhaseRejected, record.WantPause, time.Time{}, "now rejected; continue it with: ddiff resume night-12345678"},
	} {
		var out bytes.Buffer
		record := api.Submitted{ID: "night-12345678", Phase: c.phase, Wanted: c.wanted, Recalled: c.recalled}
		if err := printSubmitted(&out, record, false); err != nil {
			t.Fatal(err)
		}
		if want := "night-12345678  (submitted before, " + c.want + ")\n"; out.String() != want {
			t.Errorf("phase %s, wanted %s: %q, want %q", c.phase, c.wanted, out.String(), want)
		}
	}
}

// TestOutputNote: a submission says where the results go, unless the user has chosen this folder or none.
func TestOutputNote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, flag, output, want string }{
		{"", "", "night-12345678", ""},
		{"", "maps", "maps", ""},
		{"output: out/night", "maps", "maps", ""},
		{"output: out/night", "", "night-12345678", "folder night-12345678 of the cluster's store, not to out/night; --output chooses"},
		{"", "maps", "night-12345678", "folder night-12345678 of the cluster's store, not to maps; --output chooses"}, // submitted before
	} {
		spec, err := manifest.Parse("night.yaml", []byte("dataset: {path: photos}\n"+c.file), "/")
		if err != nil {
			t.Fatal(err)
		}
		note := outputNote(spec, c.flag, api.Submitted{Output: c.output})
		if !strings.Contains(note, c.want) || (note == "") != (c.want == "") {
			t.Errorf("%q and --output %q: note %q, want %q", c.file, c.flag, note, c.want)
		}
	}
}

// TestStatusOfChangedDataset prints the problem and the warning of a campaign, each in one line.
func TestStatusOfChangedDataset(t *testing.T) {
	t.Parallel()
	st := record.Status{Phase: record.PhaseRunning, Problem: "waiting for the dataset", Warning: "the dataset changed"}
	var out bytes.Buffer
	err := writeStatus(&out, record.CampaignStatus{Campaign: &record.Campaign{Phase: record.PhaseRunning}, Status: st})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\nproblem    waiting for the dataset\n", "\nwarning    the dataset changed\n"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("the status lacks %q:\n%s", line, out.String())
		}
	}
	out.Reset()
	err = writeStatus(&out, record.CampaignStatus{Campaign: &record.Campaign{ID: "night", Phase: record.PhaseRejected, Reason: "cut"}})
	if want := "phase      rejected: cut\nremedy     mend the cause, then: ddiff resume night\n"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("the status lacks %q: %v\n%s", want, err, out.String())
	}
	out.Reset()
	if err := watch(t.Context(), changing(t, st), "night", false, io.Discard, &out); err != nil || strings.Count(out.String(), "warning: the dataset changed\n") != 1 {
		t.Errorf("watch prints %q, %v", out.String(), err)
	}
}

// serving returns a client of a server with the answer of each path below /api/v1/ at a time.
func serving(t *testing.T, answer func(path string) any) *api.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(answer(strings.TrimPrefix(r.URL.Path, "/api/v1/"))); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := api.NewClient(api.ClientConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// changing is a cluster with a campaign that has ended when it is read again.
func changing(t *testing.T, status record.Status) *api.Client {
	reads := 0
	return serving(t, func(string) any {
		if reads++; reads > 1 {
			status.Phase = record.PhaseFinished
		}
		return record.CampaignStatus{Campaign: &record.Campaign{ID: "night", Phase: status.Phase}, Status: status}
	})
}

// listed is a cluster with campaigns and a worker.
func listed(t *testing.T, all ...record.CampaignStatus) *api.Client {
	return serving(t, func(path string) any {
		if path == "workers" {
			return api.Workers{Workers: []record.Beat{{Name: "w1\x1b[2J", Provider: "cpu"}}}
		}
		if path == "me" {
			return api.Me{Owner: "ann"}
		}
		return api.Campaigns{Campaigns: all}
	})
}

// TestTop: a picture has what has not ended, with sums, and nothing that a worker writes moves the cursor.
func TestTop(t *testing.T) {
	t.Parallel()
	of := func(id string, phase record.Phase, rate float64, pending int) record.CampaignStatus {
		return record.CampaignStatus{Campaign: &record.Campaign{ID: id, Phase: phase}, Status: record.Status{Phase: phase, Rate: rate, Counts: record.Counts{Pending: pending}}}
	}
	l := listed(t, of("a", record.PhaseRunning, 1.5, 7), of("b", record.PhaseFinished, 9, 0), of("c", record.PhasePaused, 0, 3))
	var out bytes.Buffer
	if err := writeTop(t.Context(), l, &out, ""); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.HasPrefix(text, "1 workers  2 campaigns  10 items wait  1.5 items/s\n\nCAMPAIGN") || strings.Contains(text, "\nb ") || strings.Contains(text, "\x1b") || !strings.Contains(text, "w1") {
		t.Errorf("the picture is %q", text)
	}
}

// TestNewest: a status without an id is that of the campaign that was submitted last, wherever the list has it.
func TestNewest(t *testing.T) {
	t.Parallel()
	at := func(id string, hour int) record.CampaignStatus {
		return record.CampaignStatus{Campaign: &record.Campaign{ID: id, Submitted: time.Date(2026, 11, 28, hour, 0, 0, 0, time.UTC)}}
	}
	l := listed(t, at("b", 2), at("c", 3), at("a", 1))
	if id, err := oneOrNewest(t.Context(), l, nil); id != "c" || err != nil {
		t.Errorf("the newest is %q, %v", id, err)
	}
	own := at("own", 0)
	own.Campaign.Owner = "ann"
	if id, err := oneOrNewest(t.Context(), listed(t, at("c", 3), own), nil); id != "own" || err != nil {
		t.Errorf("the newest of the owner is %q, %v", id, err)
	}
	if id, err := oneOrNewest(t.Context(), l, []string{"a"}); id != "a" || err != nil {
		t.Errorf("the named one is %q, %v", id, err)
	}
	if _, err := oneOrNewest(t.Context(), listed(t), nil); !errors.Is(err, api.ErrNotFound) || !strings.Contains(err.Error(), "list --all") {
		t.Errorf("without a campaign: %v", err)
	}
}

// TestFailuresOfWatch: a campaign with failed items ends watch with an error that names the place of the reasons.
func TestFailuresOfWatch(t *testing.T) {
	t.Parallel()
	s := record.CampaignStatus{
		Campaign: &record.Campaign{ID: "night-12345678", Output: "shared", Phase: record.PhaseFinished},
		Status:   record.Status{Phase: record.PhaseFinished, Counts: record.Counts{Items: 3, Done: 1, Failed: 2}},
	}
	var out bytes.Buffer
	err := endOf(s, false, &out)
	if out.String() != "done=1 failed=2 dead=0 lost=0\n" || cli.ExitCode(err) != cli.ExitIncomplete {
		t.Errorf("watch prints %q and ends with %v", out.String(), err)
	}
	if want := "2 failed, 0 dead; the reasons are in shared/failures/night-12345678 of the store"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is %q, want %q at its end", err, want)
	}
}

// TestEndOfWatch: a campaign that was resumed after its end has not ended, although its phase is still the old one.
func TestEndOfWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase, status record.Phase
		wanted        record.Wanted
		want          bool
	}{
		{record.PhaseFinished, record.PhaseFinished, record.WantRun, true},
		{record.PhaseFinished, record.PhaseRunning, record.WantRun, false},
		{record.PhaseCancelled, record.PhaseCancelled, record.WantCancel, true},
		{record.PhaseCancelled, record.PhaseCancelled, record.WantCancelNow, true},
		{record.PhaseCancelled, record.PhaseCancelled, record.WantRun, false},
		{record.PhaseRejected, record.PhaseRejected, record.WantPause, true},
		{record.PhaseRejected, record.PhaseRejected, record.WantRun, false},
		{record.PhaseRunning, record.PhaseRunning, record.WantRun, false},
	} {
		got := hasEnded(record.CampaignStatus{
			Campaign: &record.Campaign{Phase: c.phase, Wanted: c.wanted}, Status: record.Status{Phase: c.status},
		})
		if got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// TestProbes: a process is alive from its start, is ready when its probes say so, and each answer names its reason.
func TestProbes(t *testing.T) {
	t.Parallel()
	p := newProbes("opening the device")
	mux := http.NewServeMux()
	p.handle(mux)
	want := func(path string, code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != code || w.Body.String() != text {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, code, text)
		}
	}
	want("/startupz", 503, "opening the device\n")
	want("/readyz", 503, "opening the device\n")
	want("/livez", 200, "ok\n")
	p.started.set(passed)
	p.ready.set(func() error { return errors.New("not connected to NATS") })
	want("/startupz", 200, "ok\n")
	want("/readyz", 503, "not connected to NATS\n")
	want("/livez", 200, "ok\n")
	p.ready.set(passed)
	p.live.set(func() error { return errors.New("stage solve took 15m0s") })
	want("/startupz", 200, "ok\n")
	want("/readyz", 200, "ok\n")
	want("/livez", 503, "stage solve took 15m0s\n")
}

// TestNotifyKey: the flags of notifications are refused, with the remedy, before a server is asked.
func TestNotifyKey(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		flags notifyFlags
		want  string
	}{
		{notifyFlags{}, ""},
		{notifyFlags{hosts: []string{"a.example"}}, "give --notify-secret FILE"},
		{notifyFlags{secret: "key"}, "give --notify-host too"},
		{notifyFlags{hosts: []string{"a.example"}, secret: file("short\n")}, "has 5 bytes, at least 24"},
		{notifyFlags{hosts: []string{"a.example"}, secret: file(strings.Repeat("x", 24))}, ""},
	} {
		key, err := c.flags.key()
		if c.want == "" && (err != nil || (key == nil) != (c.flags.hosts == nil)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %q, %v", c.flags, key, err)
		}
	}
}

// TestTLSFlags: a certificate that cannot be served is a wrong flag, not an API that never answers.
func TestTLSFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "key.pem")
	a := apiFlags{address: ":8080", tls: serve.TLS{Cert: missing, Key: missing}, oidc: oidcFlags{owner: defaultOwner, groups: defaultGroups}}
	if err := a.check(); cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), "--tls-cert and --tls-key") || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestOIDCFlags(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := apiFlags{address: ":8080", oidc: oidcFlags{
		issuer: "https://id.example.org", client: "ddiff", secret: secret, owner: "sub", roles: []string{"cn=a,ou=b=submitter", "*=viewer"},
	}}
	if err := a.check(); err != nil || !a.requireTokens {
		t.Errorf("tokens required %v, %v", a.requireTokens, err)
	}
	if c := a.oidc.config; c.ClientSecret != "word" || c.Roles["cn=a,ou=b"] != api.Submitter || c.Roles["*"] != api.Viewer {
		t.Errorf("%+v", c)
	}
	empty := secret + "-empty"
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string]oidcFlags{
		"give it":              {client: "ddiff"},
		"--oidc-groups and":    {groups: "roles"},
		"a is repeated":        {issuer: "https://id.example.org", client: "ddiff", roles: []string{"a=viewer", "a=admin"}},
		`the role "owner"`:     {issuer: "https://id.example.org", client: "ddiff", roles: []string{"a=owner"}},
		"no https address":     {issuer: "id.example.org", client: "ddiff", roles: []string{"a=viewer"}},
		"is empty":             {issuer: "https://id.example.org", client: "ddiff", roles: []string{"a=viewer"}, secret: empty},
		"--oidc-client ID":     {issuer: "https://id.example.org", roles: []string{"a=viewer"}},
		"--oidc-role GROUP":    {issuer: "https://id.example.org", client: "ddiff"},
		`"viewer" is no GROUP`: {issuer: "https://id.example.org", client: "ddiff", roles: []string{"viewer"}},
		"--oidc-secret: open":  {issuer: "https://id.example.org", client: "ddiff", roles: []string{"a=viewer"}, secret: secret + "x"},
		"are for --listen":     {issuer: "https://id.example.org", client: "ddiff", roles: []string{"a=viewer"}},
	} {
		flags.owner, flags.groups = cmp.Or(flags.owner, defaultOwner), cmp.Or(flags.groups, defaultGroups)
		a := apiFlags{address: listenOff, oidc: flags}
		if err := a.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", flags, err, want)
		}
	}
}
