package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// TestAttackLocalhost: a server for one user of a machine answers nobody without its secret, also behind a proxy that hides itself. The secret
// in the address of the page becomes a session of this port.
func TestAttackLocalhost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.serve(f.open(), false)
	id := f.campaign("night", "", func(*record.Campaign) {})
	target, err := url.Parse(at)
	must(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(proxy.Close)
	none := "Authorization: Bearer "
	for _, server := range []string{at, proxy.URL} {
		for _, path := range []string{"/me", "/campaigns", "/campaigns/" + id, "/workers", "/events"} {
			if a := send(t, http.MethodGet, server+"/api/v1"+path, "", none); a.status != http.StatusUnauthorized {
				t.Errorf("GET %s without the secret: %d %s", path, a.status, a.body)
			}
		}
		if a := send(t, http.MethodPost, server+"/api/v1/campaigns/"+id+"/cancel", "", none); a.status != http.StatusUnauthorized {
			t.Errorf("a verb without the secret: %d %s", a.status, a.body)
		}
		if a := send(t, http.MethodGet, server+"/", "", none); a.status != http.StatusOK {
			t.Errorf("the page: %d", a.status)
		}
	}
	if a := signIn(t, at, door, "another"); a.status != http.StatusUnauthorized || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong secret: %d %v", a.status, a.header)
	}
	session := sessionOf(t, signIn(t, at, door, localSecret))
	if a := send(t, http.MethodGet, at+door+"/me", "", session); a.status != 200 || !strings.Contains(a.body, `"role":"admin"`) {
		t.Errorf("the session: %d %s", a.status, a.body)
	}
	if a := send(t, http.MethodGet, at+"/?token="+url.QueryEscape(localSecret), "", none); a.status != http.StatusOK || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a secret in an address that browsers send: %d %v", a.status, a.header)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/api/v1/me", nil)
	must(t, err)
	r.Host = "rebound.example:" + target.Port()
	r.Header.Set("Authorization", "Bearer "+localSecret)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a name that another site may point here: %s", answer.Status)
	}
	if a := send(t, http.MethodPost, at+"/api/v1/tokens", `{"owner":"eve","role":"admin"}`, "Content-Type: application/json"); a.status != http.StatusConflict {
		t.Errorf("a further token: %d %s", a.status, a.body)
	}
}

// TestAttackStreams: one token has a bounded number of event streams, and others get theirs.
func TestAttackStreams(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	at := f.serve(c, true) + "/api/v1/events"
	viewer, admin := "Authorization: Bearer "+f.token(c, "eve", api.Viewer), "Authorization: Bearer "+f.token(c, "root", api.Admin)
	for range 64 {
		openStream(t, at, "", viewer)
	}
	if a := send(t, http.MethodGet, at, "", viewer); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "64 event streams of this token") {
		t.Errorf("one more stream: %d %s", a.status, a.body)
	}
	openStream(t, at, "", admin).next(t, "ready", "")
}

// TestAttackAudit: one line for each wrong token and each change, with who, from where, and the id of the request, and none for what is only read.
func TestAttackAudit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	c := f.open()
	at := f.serve(c, true) + "/api/v1"
	bob := "Authorization: Bearer " + f.token(c, "bob", api.Submitter)
	root := "Authorization: Bearer " + f.token(c, "root", api.Admin)
	id := f.campaign("night", "ann", func(*record.Campaign) {})
	lines := func() (all []string) {
		for line := range strings.Lines(f.logs.String()) {
			if strings.Contains(line, "msg=audit") {
				all = append(all, line)
			}
		}
		return all
	}
	for range 50 {
		send(t, http.MethodGet, at+"/campaigns", "", "Authorization: Bearer ddiff_forged")
	}
	until(t, "50 lines", func() bool { return len(lines()) == 50 })
	send(t, http.MethodGet, at+"/campaigns", "", bob)
	a := send(t, http.MethodPost, at+"/campaigns/"+id+"/pause", "", bob)
	until(t, "a refused verb", func() bool { return len(lines()) == 51 })
	last := lines()[50]
	for _, part := range []string{"level=WARN", "status=403", "owner=bob", "role=submitter", "/campaigns/" + id + "/pause", "address=127.0.0.1", "request=" + a.header.Get("X-Request-Id")} {
		if !strings.Contains(last, part) || a.header.Get("X-Request-Id") == "" {
			t.Errorf("the line %q lacks %q", last, part)
		}
	}
	send(t, http.MethodPost, at+"/tokens", `{"owner":"eve","role":"viewer"}`, root, "Content-Type: application/json")
	send(t, http.MethodPost, at+"/campaigns", strings.Replace(campaignFile, "night", "dawn", 1), bob, "Content-Type: application/yaml")
	until(t, "two changes", func() bool { return len(lines()) == 53 })
	for i, parts := range [][]string{{"owner=root", "token_owner=eve", "token_role=viewer", "status=201"}, {"owner=bob", "created=true", "campaign=dawn-"}} {
		for _, part := range parts {
			if line := lines()[51+i]; !strings.Contains(line, part) {
				t.Errorf("the line %q lacks %q", line, part)
			}
		}
	}
	if strings.Contains(f.logs.String(), "ddiff_") {
		t.Error("the log has a secret")
	}
}

// TestAttackEndedTokens: a token is refused from its end on.
func TestAttackEndedTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	ctx := recordtest.Administrator(t.Context())
	later := time.Duration(0)
	c := cluster.New(cluster.Config{Board: f.board, Now: func() time.Time { return time.Now().Add(later) }})
	t.Cleanup(c.Close)
	made, err := c.CreateToken(ctx, "ann", api.Viewer, 2)
	must(t, err)
	if _, err := c.Token(ctx, made.Secret); err != nil {
		t.Error(err)
	}
	later = 49 * time.Hour
	if _, err := c.Token(ctx, made.Secret); err == nil || !strings.Contains(err.Error(), "the access token ended at ") {
		t.Errorf("after its end: %v", err)
	}
	later = 0
	if made, err = c.CreateToken(ctx, "ann", api.Viewer, 0); err != nil || made.Ends.Sub(made.Created) != api.TokenDays*24*time.Hour {
		t.Errorf("a token without days ends at %v, %v", made.Ends, err)
	}
	for owner, days := range map[string]int{"..": 1, ".ddiff": 1, "campaigns": 1, "ann": 4000, "bob": -1} {
		if _, err := c.CreateToken(ctx, owner, api.Viewer, days); err == nil {
			t.Errorf("a token of %q for %d days", owner, days)
		}
	}
}

// TestAttackDamagedWindow: the lists of a campaign whose stored items are damaged answer at once with the reason, and work when it is mended.
func TestAttackDamagedWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.serve(f.open(), false)
	id := f.campaign("night", "", func(*record.Campaign) {})
	f.windows(id, 2, 2)
	key := shard.Key(id, 0)
	whole, err := f.store.Get(t.Context(), key)
	must(t, err)
	must(t, f.store.Put(t.Context(), key, whole[:len(whole)/2]))
	for _, path := range []string{"items", "throughput", "items"} {
		begin := time.Now()
		a := send(t, http.MethodGet, at+"/api/v1/campaigns/"+id+"/"+path, "")
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "cannot be read: ") || !strings.Contains(a.body, "urn:ddiff:store-unavailable") || time.Since(begin) > 4*time.Second {
			t.Errorf("%s of a damaged window after %v: %d %s", path, time.Since(begin), a.status, a.body)
		}
	}
	must(t, f.store.Put(t.Context(), key, whole))
	until(t, "the mended list", func() bool { return send(t, http.MethodGet, at+"/api/v1/campaigns/"+id+"/items", "").status == 200 })
}

// TestAppendPaths: rows are appended from an absolute path or an address without credentials.
func TestAppendPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.serve(f.open(), false) + "/api/v1/campaigns/" + f.campaign("night", "", func(c *record.Campaign) { c.Phase = record.PhaseFinished }) + "/append"
	for path, want := range map[string]string{"photos": "relative", "https://user:secret@host/a.csv": "credentials", `/a\nb`: "control characters"} {
		if a := send(t, http.MethodPost, at, `{"path":"`+path+`"}`, "Content-Type: application/json"); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) || strings.Contains(a.body, "secret") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestSubmittedOutputs: an output with which every coordinator would reject the campaign is refused, and a check tells it: the campaign would keep it.
func TestSubmittedOutputs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.lead()
	at := f.serve(f.open(), false) + "/api/v1/campaigns?output="
	for _, output := range []string{"./a", "a/../b", "/a", "a//b", "s3://bucket/a", "campaigns/a", "priors", ".ddiff"} {
		a := send(t, http.MethodPost, at+url.QueryEscape(output), campaignFile, "Content-Type: application/yaml")
		if a.status != http.StatusConflict || !strings.Contains(a.body, "output: ") || !strings.Contains(a.body, "give another folder") {
			t.Errorf("%s: %d %s", output, a.status, a.body)
		}
		a = send(t, http.MethodPost, at+url.QueryEscape(output)+"&dry_run=true", campaignFile, "Content-Type: application/yaml")
		if a.status != http.StatusOK || !strings.Contains(a.body, "give another folder") {
			t.Errorf("check of %s: %d %s", output, a.status, a.body)
		}
	}
	if a := send(t, http.MethodPost, at+"ann/night/", campaignFile, "Content-Type: application/yaml"); a.status != http.StatusCreated {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestIdempotencyKey: a repeated request with a key is answered as the first one, another request with the key is executed.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.campaign("night", "", func(*record.Campaign) {})
	at := f.serve(f.open(), false) + "/api/v1/campaigns/" + id
	keys := map[string]int{} // the number of each, as a leader of package coordinator has them
	answer := func(_ context.Context, data []byte) []byte {
		var v board.Verb
		must(t, json.Unmarshal(data, &v))
		if keys[v.Key] == 0 {
			keys[v.Key] = len(keys) + 1
		}
		body, _ := json.Marshal(api.Appended{Items: keys[v.Key]})
		out, _ := json.Marshal(board.Answer{Body: body})
		return out
	}
	must(t, f.board.Put(t.Context(), queue.KeyLeader, []byte("{}")))
	leader := lifecycle.Go(t.Context(), func(ctx context.Context) error { return f.board.Answer(ctx, answer) })
	defer leader.Stop()
	for _, c := range []struct{ verb, body, want string }{
		{"append", `{}`, `{"items":1}`},
		{"append", `{}`, `{"items":1}`},
		{"retry", `{"missing":true}`, `{"published":2}`},
		{"append", `{"path":"/more.csv"}`, `{"items":3}`},
		{"retry", `{"missing":true,"items":[]}`, `{"published":2}`},
	} {
		a := send(t, http.MethodPost, at+"/"+c.verb, c.body, "Content-Type: application/json", "Idempotency-Key: nightly 1")
		if a.status != http.StatusOK || strings.TrimSpace(a.body) != c.want {
			t.Errorf("%s %s: %d %s, want %s", c.verb, c.body, a.status, a.body, c.want)
		}
	}
}

// TestAttackRequests: a retry needs a part of a reason, logs the beginning of an identity, and a check refuses more steps than the schedule of any prior has.
func TestAttackRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.serve(f.open(), false) + "/api/v1/campaigns"
	id := f.campaign("night", "", func(*record.Campaign) {})
	for _, where := range []string{`\u001b[2J`, ` `, `a\nb`, strings.Repeat("a", 2000)} {
		if a := send(t, http.MethodPost, at+"/"+id+"/retry", `{"outcomes":["failed"],"where":"`+where+`"}`, "Content-Type: application/json"); a.status != http.StatusUnprocessableEntity {
			t.Errorf("where %.20q: %d %s", where, a.status, a.body)
		}
	}
	if a := send(t, http.MethodGet, at+"/"+id+"/logs?item=a%7F", ""); a.status != http.StatusUnprocessableEntity {
		t.Errorf("logs of an item that is no identity: %d %s", a.status, a.body)
	}
	for _, field := range []string{"steps: 9000000000000000000\n", "steps: 100001\n"} {
		a := send(t, http.MethodPost, at+"?dry_run=true", campaignFile+field, "Content-Type: application/yaml")
		if a.status != 200 || !strings.Contains(a.body, `"field":"steps"`) {
			t.Errorf("%s: %d %s", field, a.status, a.body)
		}
	}
}

// TestAttackSlowBody: a body that comes slowly does not keep its connection, whether its request has a token or not.
func TestAttackSlowBody(t *testing.T) {
	if testing.Short() {
		t.Skip("waits a quarter of a minute: make test-all")
	}
	t.Parallel()
	f := newFixture(t)
	at := f.serve(f.open(), false)
	host := strings.TrimPrefix(at, "http://")
	type result struct {
		name string
		took time.Duration
	}
	requests := map[string]string{
		"without a token": "POST /api/v1/campaigns HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\nContent-Length: 1000\r\n\r\n",
		"with a token":    "POST /api/v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + localSecret + "\r\nContent-Type: application/yaml\r\nContent-Length: 1000\r\n\r\n",
		"of the page":     "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"in chunks":       "POST /api/v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + localSecret + "\r\nContent-Type: application/yaml\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n",
	}
	results := make(chan result)
	for name, head := range requests {
		go func() {
			begin := time.Now()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
			if err != nil {
				results <- result{name, time.Hour}
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, head) // the server may have closed it
			go func() {
				for range 600 { // until the server closes the connection
					if _, err := fmt.Fprint(conn, "#"); err != nil {
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			}()
			in := bufio.NewReader(conn)
			for {
				if _, err := in.ReadByte(); err != nil {
					break
				}
			}
			results <- result{name, time.Since(begin)}
		}()
	}
	for range requests {
		if r := <-results; r.took > 20*time.Second {
			t.Errorf("a slow body %s keeps its connection for %v", r.name, r.took)
		}
	}
}
