package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// document is the part of the OpenAPI document that the tests read.
type document struct {
	Paths map[string]map[string]struct {
		Role      string         `json:"x-role"`
		Responses map[string]any `json:"responses"`
	} `json:"paths"`
}

func readDocument(t *testing.T, url string) (d document) {
	t.Helper()
	must(t, json.Unmarshal([]byte(send(t, http.MethodGet, url+"/openapi.json", "").body), &d))
	if len(d.Paths) < 20 {
		t.Fatalf("the document has %d paths", len(d.Paths))
	}
	return d
}

// TestRolesOfRoutes sends every request of the document without a token and with a token of every role: a role below that of the route
// gets 401 or 403 and no other answer does, and each status is documented.
func TestRolesOfRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	id := f.campaign("night", "another", func(c *record.Campaign) { c.Phase = record.PhaseFinished })
	roles := []api.Role{"", api.Viewer, api.Submitter, api.Admin}
	secrets := map[api.Role]string{"": "ddiff_false"}
	for _, r := range api.Roles() {
		secrets[r] = f.token(c, "owner of "+string(r), r)
	}
	routes, cases, failures := 0, 0, 0
	d := readDocument(t, url)
	for path, methods := range d.Paths {
		for method, route := range methods {
			routes++
			for i, role := range roles {
				at := strings.NewReplacer("{id}", id, "{item}", boardtest.ID(1), "{name}", "restored.png", "{path}", "index.html", "{token}", "0123456789ab").Replace(path)
				if strings.HasSuffix(path, "/events") && i >= slices.Index(roles, api.Role(route.Role)) {
					continue // a stream has no end; TestEvents reads it
				}
				cases++
				body := `{"owner":"x","role":"viewer"}`
				switch {
				case strings.HasSuffix(path, "/retry"):
					body = `{"outcomes":["failed"]}`
				case strings.HasSuffix(path, "/append"):
					body = `{"path":"/more"}`
				case method == "patch":
					body = `{"weight":5}`
				case path == "/session":
					body = `{"token":"ddiff_false"}`
				}
				if method == "delete" && strings.HasPrefix(path, "/campaigns/") {
					at += "?dry_run=true"
				}
				a := send(t, strings.ToUpper(method), url+"/api/v1"+at, body,
					"Authorization: Bearer "+secrets[role], "Content-Type: application/json")
				_, documented := route.Responses[fmt.Sprint(a.status)]
				refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
				wrong := refused != (i < slices.Index(roles, api.Role(route.Role)))
				if foreign := role == api.Submitter && strings.Contains(path, "{id}") && method != "get"; foreign || at == "/session" {
					wrong = !refused && at != "/session" // the campaign of another owner
				}
				if wrong || !documented || a.status >= 500 && a.status != http.StatusServiceUnavailable {
					failures++
					t.Errorf("%s %s as %q: %d, documented %v: %s", method, path, role, a.status, documented, a.body)
				}
			}
		}
	}
	fmt.Printf("routes=%d roles=%d cases=%d failures=%d\n", routes, len(roles), cases, failures)
	if routes < 25 || cases < 4*routes-10 {
		t.Errorf("%d routes and %d cases", routes, cases)
	}
}

// TestTokens: the board never has a secret; a session works as its token does; a revoked token is refused at once.
func TestTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	admin := client(t, url, f.token(c, "root", api.Admin))
	made, err := admin.CreateToken(t.Context(), "ann", api.Viewer, 0)
	must(t, err)
	if len(made.Secret) < 64 {
		t.Errorf("the secret has %d characters", len(made.Secret))
	}
	for change, err := range f.board.Watch(t.Context(), "") {
		must(t, err)
		if strings.Contains(change.Key+string(change.Data), made.Secret) {
			t.Errorf("the board has the secret in %s", change.Key)
		}
		if change.Ready {
			break
		}
	}
	login := signIn(t, url, door, made.Secret)
	cookie := login.header.Get("Set-Cookie")
	session := sessionOf(t, login)
	if a := send(t, http.MethodGet, url+door+"/me", "", session); a.status != 200 || !strings.Contains(a.body, `"owner":"ann"`) {
		t.Errorf("a session: %d %s", a.status, a.body)
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie %q works without TLS only", cookie)
	}
	proxied := signIn(t, url, door, made.Secret, "X-Forwarded-Proto: https")
	if cookie := proxied.header.Get("Set-Cookie"); !strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie %q behind a proxy with TLS", cookie)
	}
	events := openStream(t, url+door+"/events", "", session)
	events.next(t, "ready", "")
	all, err := admin.Tokens(t.Context())
	if err != nil || len(all.Tokens) != 2 || all.Tokens[1].Secret != "" || all.Tokens[1].ID != made.ID {
		t.Errorf("tokens %+v, %v", all, err)
	}
	must(t, admin.RevokeToken(t.Context(), made.ID))
	if all, err := admin.Tokens(t.Context()); err != nil || len(all.Tokens) != 1 {
		t.Errorf("tokens after a revocation %+v, %v", all, err)
	}
	if err := admin.RevokeToken(t.Context(), made.ID); !errors.Is(wantCondition(err), api.ErrNotFound) {
		t.Errorf("a second revocation: %v", err)
	}
	if a := send(t, http.MethodGet, url+door+"/me", "", session); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked session: %d %s", a.status, a.body)
	}
	stop := time.AfterFunc(time.Minute, events.cancel)
	defer stop.Stop()
	for events.lines.Scan() { // until the next heartbeat
	}
	if err := events.lines.Err(); errors.Is(err, context.Canceled) {
		t.Error("the stream of a revoked session goes on")
	}
}

// TestSessionBehindPrefix: a browser signs in and out, also through a proxy that serves the page below a path, and sends its cookie to its
// door only. The token is one of the board, or that of the administrator's file.
func TestSessionBehindPrefix(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	server, err := url.Parse(f.serve(c, true))
	must(t, err)
	tokens := map[string]string{"": f.token(c, "ann", api.Viewer), "/images/ddiff": administrator}
	forward := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) }}
	for prefix, token := range tokens {
		proxy := httptest.NewServer(http.StripPrefix(prefix, forward))
		t.Cleanup(proxy.Close)
		jar, err := cookiejar.New(nil)
		must(t, err)
		browser := proxy.Client()
		browser.Jar = jar
		call := func(method, path, body string, want int) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, proxy.URL+prefix+door+"/"+path, strings.NewReader(body))
			must(t, err)
			r.Header.Set("Content-Type", "application/json")
			a, err := browser.Do(r)
			must(t, err)
			must(t, a.Body.Close())
			if a.StatusCode != want {
				t.Errorf("below %q: %s %s: %s, want %d", prefix, method, path, a.Status, want)
			}
		}
		call(http.MethodPost, "session", `{"token":"`+token+`"}`, http.StatusOK)
		call(http.MethodGet, "me", "", http.StatusOK)
		for _, other := range []string{"/", prefix + "/app.js", "/another/", prefix + "/api/v1/me"} {
			at, err := url.Parse(proxy.URL + other)
			must(t, err)
			if sent := jar.Cookies(at); len(sent) > 0 {
				t.Errorf("below %q: the browser sends %v to %s", prefix, sent, other)
			}
		}
		call(http.MethodDelete, "session", "", http.StatusOK)
		call(http.MethodGet, "me", "", http.StatusUnauthorized)
	}
}

// TestOwners: a submitter changes only its own campaigns, and puts none before those of others.
func TestOwners(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	ann, bob := client(t, url, f.token(c, "ann", api.Submitter)), client(t, url, f.token(c, "bob", api.Submitter))
	made, err := ann.Submit(t.Context(), []byte(campaignFile), api.Order{})
	if err != nil || !made.Created {
		t.Fatalf("%+v, %v", made, err)
	}
	if again, err := ann.Submit(t.Context(), []byte(campaignFile), api.Order{}); err != nil || again.Created || again.ID != made.ID {
		t.Errorf("a second submission: %+v, %v", again, err)
	}
	for output, allowed := range map[string]bool{made.ID: false, "bob": false, "bobby/x": false, "eve/x": false, "bob/x": true} {
		_, err := bob.Submit(t.Context(), []byte(strings.Replace(campaignFile, "night", "thief", 1)), api.Order{Output: output})
		if (err == nil) != allowed || !allowed && !errors.Is(err, api.ErrDenied) {
			t.Errorf("bob's campaign with the output %s: %v", output, err)
		}
	}
	root := client(t, url, f.token(c, "root", api.Admin))
	for i, who := range []*api.Client{bob, root} {
		for _, p := range record.Priorities() {
			_, err := who.Submit(t.Context(), []byte(strings.Replace(campaignFile, "night", fmt.Sprint(p, "-", i), 1)), api.Order{Priority: p})
			if allowed := who == root || p != record.PriorityHigh; (err == nil) != allowed || !allowed && !errors.Is(err, api.ErrDenied) {
				t.Errorf("the priority %s of client %d: %v", p, i, err)
			}
		}
	}
	s, err := bob.Campaign(t.Context(), made.ID)
	if err != nil || s.Campaign.Owner != "ann" {
		t.Errorf("%+v, %v", s.Campaign, err)
	}
	if _, err := bob.Want(t.Context(), made.ID, record.WantCancel); !errors.Is(err, api.ErrDenied) {
		t.Errorf("another owner: %v", err)
	}
	if got, err := ann.Want(t.Context(), made.ID, record.WantPause); err != nil || got.Wanted != record.WantPause {
		t.Errorf("%+v, %v", got, err)
	}
}

// undeletable is a store that fails to delete some objects.
type undeletable struct {
	storage.Store
	is  func(key string) bool
	err error
}

// Delete implements storage.Store.
func (s *undeletable) Delete(ctx context.Context, key string) error {
	if s.is(key) {
		return s.err
	}
	return s.Store.Delete(ctx, key)
}

// archived makes a finished campaign of the archive.
func (f *fixture) archived(name, owner string) (id string) {
	f.t.Helper()
	id = f.campaign(name, owner, func(c *record.Campaign) { c.Phase = record.PhaseFinished })
	row := index.Row{Phase: record.PhaseFinished, Priority: record.PriorityNormal}
	must(f.t, index.New(f.store).Add(f.t.Context(), index.Entry{ID: id, Number: 1, State: index.Archived, Output: index.OutputDigest(id), Row: row}))
	must(f.t, f.store.Put(f.t.Context(), index.KeyComplete, nil))
	must(f.t, f.board.Delete(f.t.Context(), record.KeyCampaignPrefix+id))
	return id
}

// TestOwnerCompletesDeletion: the owner of a campaign in the archive, and nobody else, completes an interrupted deletion, also one that has lost
// the record. A dry run leaves the campaign where it is.
func TestOwnerCompletesDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	url := f.serve(c, true)
	ann, bob := client(t, url, f.token(c, "ann", api.Submitter)), client(t, url, f.token(c, "bob", api.Submitter))
	for name, is := range map[string]func(key string) bool{
		"record": func(key string) bool { return !strings.HasPrefix(key, index.Prefix) },
		"entry":  func(key string) bool { _, is := index.ParseKey(key); return is },
	} {
		id := f.archived(name, "ann")
		stop := f.lead()
		_, err := ann.Delete(t.Context(), id, true, true)
		must(t, err)
		stop()
		stop = f.leadOver(&undeletable{f.store, is, errors.New("cut off")})
		if _, err := c.Delete(recordtest.Administrator(t.Context()), id, true, false); err == nil {
			t.Fatalf("%s: nothing interrupts the deletion", name)
		}
		stop()
		stop = f.lead()
		if _, err := bob.Delete(t.Context(), id, true, false); !errors.Is(err, api.ErrDenied) {
			t.Errorf("%s: another owner: %v", name, err)
		}
		if _, err := ann.Delete(t.Context(), id, true, false); err != nil {
			t.Errorf("%s: the owner: %v", name, err)
		}
		if _, err := ann.Delete(t.Context(), id, true, false); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: a repetition after the end: %v", name, err)
		}
		stop()
	}
}

// TestDeletionWithoutPermission: a store that permits no deletion in one of the folders keeps the campaign as it is, and a store that
// withdraws the permission later refuses the rest.
func TestDeletionWithoutPermission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.archived("night", "ann")
	before, err := index.New(f.store).Newest(t.Context(), id)
	must(t, err)
	url := f.serve(f.open(), false)
	for _, folder := range []string{"campaigns/" + id + "/", index.Prefix, id + "/checkpoints/", id + "/items/", "campaigns/" + id + "/campaign.json"} {
		stop := f.leadOver(&undeletable{f.store, func(key string) bool { return strings.HasPrefix(key, folder) }, storage.ErrReadOnly})
		_, err := client(t, url, "").Delete(t.Context(), id, true, false)
		stop()
		if !errors.Is(err, api.ErrRefused) {
			t.Errorf("%s: %v", folder, err)
		}
		now, err := index.New(f.store).Newest(t.Context(), id)
		must(t, err)
		if late := strings.HasSuffix(folder, ".json"); (now == before) == late {
			t.Errorf("%s: the index has %+v, before %+v", folder, now, before)
		}
	}
}

// TestAttackOwnersFlood: an owner has a bounded number of campaigns on the board, and others submit as before. A known campaign is no further one.
func TestAttackOwnersFlood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.most = 2
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	ann, bob := client(t, url, f.token(c, "ann", api.Submitter)), client(t, url, f.token(c, "bob", api.Submitter))
	submit := func(who *api.Client, name string) (api.Submitted, error) {
		return who.Submit(t.Context(), []byte(strings.Replace(campaignFile, "night", name, 1)), api.Order{})
	}
	var first api.Submitted
	for i := range 4 {
		made, err := submit(ann, fmt.Sprintf("flood-%d", i))
		if i == 0 {
			first = made
		}
		if (err == nil) != (i < f.most) || err != nil && (!errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "--max-campaigns")) {
			t.Fatalf("campaign %d: %v", i, err)
		}
	}
	if again, err := submit(ann, "flood-0"); err != nil || again.Created || again.ID != first.ID {
		t.Errorf("a known campaign: %+v, %v", again, err)
	}
	_, err := submit(bob, "work")
	must(t, err)
	_, err = ann.Want(t.Context(), first.ID, record.WantCancel)
	must(t, err)
	until(t, "the campaign is deleted", func() bool { // a delete is refused while the campaign ends
		_, err := ann.Delete(t.Context(), first.ID, true, false)
		return err == nil
	})
	until(t, "ann submits again", func() bool {
		_, err := submit(ann, "later")
		return err == nil
	})
}

// TestOwnersOfOneFile: people who submit one file have a campaign each, and the check of a file names that of who asks.
func TestOwnersOfOneFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	owners := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		who := client(t, url, f.token(c, name, api.Submitter))
		checked, err := who.Check(t.Context(), []byte(campaignFile), api.Order{})
		must(t, err)
		made, err := who.Submit(t.Context(), []byte(campaignFile), api.Order{})
		if err != nil || !made.Created || made.ID != checked.ID || owners[made.ID] != "" {
			t.Errorf("%s: submitted %+v, checked %s, %v; campaigns %v", name, made, checked.ID, err, owners)
		}
		owners[made.ID] = name
		if _, err = who.Want(t.Context(), made.ID, record.WantPause); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResumeOverBudget: the answer to a resumption over HTTP has the reason why the campaign stays paused.
func TestResumeOverBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	ann := client(t, f.serve(c, true), f.token(c, "ann", api.Submitter))
	id := f.campaign("night", "ann", func(c *record.Campaign) {
		c.Phase, c.Wanted, c.Released, c.Spec.Budget = record.PhasePaused, record.WantPause, true, manifest.Budget{Items: 1}
	})
	f.windows(id, 2, 2)
	f.lead()
	until(t, "the leader has the items", func() bool {
		s, err := ann.Campaign(t.Context(), id)
		return err == nil && s.Status.Counts.Items == 2
	})
	until(t, "an answer with the reason", func() bool { // a slow leader answers before the campaign is paused again
		_, err := ann.Want(t.Context(), id, record.WantRun)
		return errors.Is(err, api.ErrRefused) && strings.Contains(err.Error(), "2 of 1 items")
	})
}

// TestChange: the owner of a campaign changes its settings, which are then those of the record, and only those that it names; nobody changes those of a
// finished one. A second submission keeps them, and says how to change them.
func TestChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	url := f.serve(c, true)
	finished := f.campaign("day", "ann", func(c *record.Campaign) { c.Phase = record.PhaseFinished })
	ann, root := client(t, url, f.token(c, "ann", api.Submitter)), client(t, url, f.token(c, "root", api.Admin))
	made, err := ann.Submit(t.Context(), []byte(campaignFile), api.Order{})
	if err != nil || made.Warning != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	id, pool, deadline, budget := made.ID, "a100", "2026-12-01T08:00:00Z", manifest.Budget{Items: 5, Cost: 2.5}
	want := api.Change{Priority: record.PriorityLow, Weight: 7, Pool: &pool, Deadline: &deadline, Budget: &budget}
	_, err = ann.Change(t.Context(), id, want)
	must(t, err)
	got, err := ann.Change(t.Context(), id, api.Change{Weight: 7})
	must(t, err)
	r, err := board.Read(t.Context(), f.board, id)
	must(t, err)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(board.SettingsOf(r), want) {
		t.Errorf("the answer is %+v, the record has %+v", got, board.SettingsOf(r))
	}
	again, err := ann.Submit(t.Context(), []byte(campaignFile), api.Order{Weight: 3})
	flags := "ddiff change " + id + " --weight 3 --pool none --deadline none --budget items=0,cost=0"
	if err != nil || again.Created || !strings.HasSuffix(again.Warning, flags) {
		t.Errorf("a second submission: %+v, %v; want the line %s", again, err, flags)
	}
	wrong, none := "no pool", manifest.Budget{Seconds: -1}
	for _, tt := range []struct {
		who    *api.Client
		id     string
		change api.Change
		want   error
	}{
		{ann, id, api.Change{Weight: 1001}, api.ErrInvalid}, {ann, id, api.Change{Pool: &wrong}, api.ErrInvalid}, {ann, id, api.Change{Deadline: &wrong}, api.ErrInvalid},
		{ann, id, api.Change{Budget: &none}, api.ErrInvalid}, {ann, id, api.Change{Priority: "first"}, api.ErrInvalid}, {ann, finished, want, api.ErrRefused},
		{ann, id, api.Change{Priority: record.PriorityHigh}, api.ErrDenied}, {root, id, api.Change{Priority: record.PriorityHigh}, nil},
	} {
		if _, err := tt.who.Change(t.Context(), tt.id, tt.change); !errors.Is(err, tt.want) {
			t.Errorf("%s, %+v: %v, want %v", tt.id, tt.change, err, tt.want)
		}
	}
}

// TestClientEqualsBoard: over HTTP the verbs have the same answers and errors as over the queue.
func TestClientEqualsBoard(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	remote := client(t, f.serve(c, false), "")
	done := f.campaign("done", "", func(c *record.Campaign) { c.Phase = record.PhaseFinished })
	same := func(name string, local, http error) {
		t.Helper()
		if local == nil || http == nil || board.Problem(local).Detail != http.Error() || !errors.Is(board.Problem(local).Unwrap(), wantCondition(http)) {
			t.Errorf("%s: %v, and over HTTP %v", name, local, http)
		}
	}
	_, a := c.Want(recordtest.Administrator(t.Context()), done, record.WantPause)
	_, b := remote.Want(t.Context(), done, record.WantPause)
	same("pause a finished campaign", a, b)
	contradiction := api.Retry{Items: []string{"aa"}, Where: "no light"}
	_, a = c.Retry(t.Context(), done, "", contradiction)
	_, b = remote.Retry(t.Context(), done, "", contradiction)
	same("retry an item with a reason", a, b)
	_, a = c.Retry(t.Context(), done, "", api.Retry{Items: []string{"aa", ""}})
	_, b = remote.Retry(t.Context(), done, "", api.Retry{Items: []string{"aa", ""}})
	same("retry an empty item", a, b)
	_, a = c.Retry(t.Context(), done, "", api.Retry{})
	_, b = remote.Retry(t.Context(), done, "", api.Retry{})
	same("retry nothing", a, b)
	_, a = c.Submit(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nname: x\n"), api.Order{})
	_, b = remote.Submit(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nname: x\n"), api.Order{})
	same("submit an unknown task", a, b)

	spec, err := manifest.Parse("night", []byte("dataset: {path: photos, size: 128}\ntasks: [{name: super_resolution, params: {factor: 4}, sigma: 0.02}]\nmethods: [ddiff, dps]\nruns: 2\n"), "/data")
	must(t, err)
	made, err := remote.SubmitSpec(t.Context(), spec, api.Order{Priority: record.PriorityHigh, Weight: 3, Canary: 4})
	if err != nil || made.ID != spec.ID("") {
		t.Fatalf("%+v, %v; want the id %s", made, err, spec.ID(""))
	}
	if !strings.HasPrefix(made.Warning, "all runs are equal of ddiff in super_resolution: ") { // those of dps differ
		t.Errorf("warning %q", made.Warning)
	}
	s, err := remote.Campaign(t.Context(), made.ID)
	if r := s.Campaign; err != nil || r.Priority != record.PriorityHigh || r.Weight != 3 || r.Canary != 4 || r.Spec.Dataset.Path != "/data/photos" {
		t.Errorf("%+v, %v", r, err)
	}
	checked, err := remote.Check(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nsigma: -1\n"), api.Order{})
	if err != nil || len(checked.Problems) == 0 || checked.Problems[0].Field == "" || checked.Problems[0].Line == 0 {
		t.Errorf("%+v, %v", checked, err)
	}
	photos := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		must(t, os.WriteFile(filepath.Join(photos, name), []byte("x"), 0o644))
	}
	checked, err = remote.Check(t.Context(), []byte("dataset: {path: "+photos+"}\ntasks: [denoise, hdr]\nruns: 2\n"), api.Order{})
	if err != nil || len(checked.Problems) > 0 || checked.Rows == nil || *checked.Rows != 3 || checked.Items == nil || *checked.Items != 12 || checked.More {
		t.Errorf("a valid file: %+v, %v", checked, err)
	}
}

// TestETag: an unchanged answer is not sent again.
func TestETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false) + "/api/v1/campaigns"
	first := send(t, "GET", url, "")
	if a := send(t, "GET", url, "", "If-None-Match: "+first.header.Get("ETag")); a.status != 304 || a.body != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	f.campaign("night", "", func(*record.Campaign) {})
	until(t, "an answer after a change", func() bool { return send(t, "GET", url, "", "If-None-Match: "+first.header.Get("ETag")).status == 200 })
}
