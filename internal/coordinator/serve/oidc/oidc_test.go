package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/coordinator/serve/leadertest"
	"ddiff/internal/coordinator/serve/oidc"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

var must = boardtest.Must

// fixture is an API server that accepts the users of an issuer.
type fixture struct {
	t       *testing.T
	issuer  *mockoidc.MockOIDC
	store   *storage.Dir
	board   *queue.Board
	cluster *cluster.Cluster
	url     string
	public  string // PublicURL of the server
}

var roles = map[string]api.Role{"research": api.Submitter, "operators": api.Admin, "engineering": api.Viewer}

func newFixture(t *testing.T, change func(c *oidc.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	f.issuer, err = mockoidc.Run()
	must(t, err)
	t.Cleanup(func() { must(t, f.issuer.Shutdown()) })
	f.serve(f.issuer.Issuer(), change)
	return f
}

// serve serves the API for the users of an issuer.
func (f *fixture) serve(issuer string, change func(c *oidc.Config)) {
	f.t.Helper()
	_, nc, b := boardtest.Start(f.t)
	f.board = b
	store, err := storage.NewDir(f.t.TempDir())
	must(f.t, err)
	f.store = store
	leadertest.Lead(f.t, nc, b, store, nil)
	f.cluster = cluster.New(cluster.Config{Board: b, Store: store, Inspect: func(id string) (*queue.Queue, error) { return queue.Inspect(nc, queue.Config{Campaign: id}) }})
	f.t.Cleanup(f.cluster.Close)
	cfg := oidc.Config{
		Issuer: issuer, ClientID: f.issuer.ClientID, ClientSecret: f.issuer.ClientSecret, OwnerClaim: "email", Roles: roles,
	}
	if change != nil {
		change(&cfg)
	}
	users, err := oidc.New(cfg, f.cluster)
	must(f.t, err)
	s, err := serve.New(serve.Config{
		Backend: f.cluster, Controller: f.cluster, Kind: "cluster", PublicURL: f.public, Tokens: users, Login: users, Tasks: json.RawMessage(`[]`), Methods: json.RawMessage(`[]`),
		Logger: slog.New(slog.NewTextHandler(f.t.Output(), nil)),
	})
	must(f.t, err)
	server := httptest.NewServer(s)
	f.t.Cleanup(server.Close)
	f.url = server.URL
}

// idToken is an ID token of the issuer for a user, with changed claims.
func (f *fixture) idToken(groups []string, change jwt.MapClaims) string {
	f.t.Helper()
	now := time.Now()
	claims := jwt.MapClaims{
		"iss": f.issuer.Issuer(), "aud": f.issuer.ClientID, "sub": "17", "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(),
		"email": "ann@example.org", "email_verified": true, "groups": groups,
	}
	for name, value := range change {
		claims[name] = value
	}
	text, err := f.issuer.Keypair.SignJWT(claims)
	must(f.t, err)
	return text
}

// send sends a request and returns the status and the body of the answer.
func (f *fixture) send(c *http.Client, method, path, token string) (int, string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+"/api/v1/"+path, nil)
	must(f.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	must(f.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(f.t, err)
	return answer.StatusCode, string(body)
}

// An ID token permits what the groups of its user permit. One that is wrong in any part permits nothing.
func TestIDTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	another, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	forged, err := mockoidc.NewKeypair(another)
	must(t, err)
	signed, err := forged.SignJWT(jwt.MapClaims{"iss": f.issuer.Issuer(), "aud": f.issuer.ClientID, "sub": "17", "exp": time.Now().Add(time.Minute).Unix()})
	must(t, err)
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{
		"iss": f.issuer.Issuer(), "aud": f.issuer.ClientID, "sub": "17", "exp": time.Now().Add(time.Minute).Unix(),
	}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	must(t, err)
	both := []string{"engineering", "research"}
	for name, tt := range map[string]struct {
		token  string
		status int
		want   string
	}{
		"highest role":     {f.idToken(both, nil), 200, `"owner":"ann@example.org","role":"submitter"`},
		"one group":        {f.idToken(nil, jwt.MapClaims{"groups": "operators"}), 200, `"role":"admin"`},
		"no group":         {f.idToken([]string{"guests"}, nil), 403, "no group of ann@example.org has a role"},
		"no groups":        {f.idToken(nil, nil), 403, "has a role"},
		"unverified email": {f.idToken(both, jwt.MapClaims{"email_verified": false}), 403, "not verified the email"},
		"no owner":         {f.idToken(both, jwt.MapClaims{"email": nil}), 403, "the claim email"},
		"long owner":       {f.idToken(both, jwt.MapClaims{"email": strings.Repeat("x", 101)}), 403, "the claim email"},
		"control in owner": {f.idToken(both, jwt.MapClaims{"email": "ann\n"}), 403, "the claim email"},
		"expired":          {f.idToken(both, jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix()}), 401, "expired"},
		"another client":   {f.idToken(both, jwt.MapClaims{"aud": "another"}), 401, "audience"},
		"several clients":  {f.idToken(both, jwt.MapClaims{"aud": []string{"another", f.issuer.ClientID}, "azp": f.issuer.ClientID}), 200, `"role":"submitter"`},
		"of another":       {f.idToken(both, jwt.MapClaims{"aud": []string{"another", f.issuer.ClientID}, "azp": "another"}), 401, "issued to another client"},
		"party of another": {f.idToken(both, jwt.MapClaims{"azp": "another"}), 401, "issued to another client"},
		"party":            {f.idToken(both, jwt.MapClaims{"azp": f.issuer.ClientID}), 200, `"role":"submitter"`},
		"owner of all":     {f.idToken(both, jwt.MapClaims{"email": ".."}), 403, "no name of an owner"},
		"owner of records": {f.idToken(both, jwt.MapClaims{"email": "campaigns"}), 403, "no name of an owner"},
		"of nobody":        {f.idToken(both, jwt.MapClaims{"aud": []string{"another", f.issuer.ClientID}}), 401, "or is for several"},
		"another issuer":   {f.idToken(both, jwt.MapClaims{"iss": "https://example.org"}), 401, "issued by a different provider"},
		"another key":      {signed, 401, "verify"},
		"no signature":     {unsigned, 401, "not valid"},
		"no token":         {"a.b.c", 401, "not valid"},
		"unknown token":    {"ddiff_false", 401, "unknown or was revoked"},
	} {
		if status, body := f.send(http.DefaultClient, http.MethodGet, "me", tt.token); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d with %q", name, status, body, tt.status, tt.want)
		}
	}
	made, err := f.cluster.CreateToken(recordtest.Administrator(t.Context()), "robot", api.Viewer, 0)
	must(t, err)
	if status, body := f.send(http.DefaultClient, http.MethodGet, "me", made.Secret); status != 200 || !strings.Contains(body, `"owner":"robot"`) {
		t.Errorf("a token beside the issuer: %d %s", status, body)
	}
}

// The owner of a campaign is the user; another user cannot change it. The client of Go programs takes ID tokens.
func TestAttackOwners(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *oidc.Config) { c.Roles = map[string]api.Role{oidc.AnyGroup: api.Submitter} })
	user := func(email string) *api.Client {
		c, err := api.NewClient(api.ClientConfig{URL: f.url, Token: f.idToken(nil, jwt.MapClaims{"email": email})})
		must(t, err)
		return c
	}
	spec, err := manifest.Parse("night", []byte("dataset: {path: /photos}\ntasks: [denoise]\n"), "/")
	must(t, err)
	c, _, err := recordtest.Submit(t.Context(), f.board, f.store, spec, board.Order{Owner: "ann@example.org"}, time.Now())
	must(t, err)
	if _, err := user("bob@example.org").Change(t.Context(), c.ID, api.Change{Weight: 3}); !errors.Is(err, api.ErrDenied) {
		t.Errorf("another user: %v", err)
	}
	if _, err := user("ann@example.org").Change(t.Context(), c.ID, api.Change{Weight: 3}); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

// browser is a client with cookies that follows redirects only below the API's server and the issuer.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// A browser signs in by the authorization code flow, keeps a session, and signs out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	b := browser(t)
	if status, body := f.send(b, http.MethodGet, "session", ""); status != 200 || !strings.Contains(body, `"login":true`) {
		t.Errorf("before: %d %s", status, body)
	}
	given := f.signIn(b, "ann@example.org")
	if status, body := f.send(b, http.MethodGet, door+"me", ""); status != 401 {
		t.Errorf("before the page has exchanged its text: %d %s", status, body)
	}
	if status, body := f.exchange(b, given); status != 200 || !strings.Contains(body, `"owner":"ann@example.org","role":"submitter"`) {
		t.Errorf("the exchange: %d %s", status, body)
	}
	root, err := url.Parse(f.url + "/api/v1/" + door)
	must(t, err)
	if all := b.Jar.Cookies(root); len(all) != 1 || all[0].Name != "ddiff_session" || strings.Count(all[0].Value, ".") != 1 {
		t.Errorf("the browser has the cookies %v", all)
	}
	if status, body := f.send(b, http.MethodGet, door+"me", ""); status != 200 || !strings.Contains(body, `"owner":"ann@example.org","role":"submitter"`) {
		t.Errorf("signed in: %d %s", status, body)
	}
	if status, body := f.exchange(browser(t), given); status != 401 {
		t.Errorf("a second exchange: %d %s", status, body)
	}
	if status, _ := f.send(b, http.MethodDelete, door+"session", ""); status != 200 {
		t.Errorf("sign out: %d", status)
	}
	if status, _ := f.send(b, http.MethodGet, door+"me", ""); status != 401 {
		t.Errorf("signed out: %d", status)
	}
}

// door is the path of a browser's session.
const door = "~0123456789abcdef0123456789abcdef/"

// signIn signs a user in at the issuer, and returns the text that the page of the browser gets.
func (f *fixture) signIn(b *http.Client, email string) (given string) {
	f.t.Helper()
	f.issuer.QueueUser(&mockoidc.MockUser{Subject: "17", Email: email, EmailVerified: true, Groups: []string{"research"}})
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.url+"/api/v1/session/login", nil)
	must(f.t, err)
	answer, err := b.Do(r)
	must(f.t, err)
	must(f.t, answer.Body.Close())
	given, found := strings.CutPrefix(answer.Header.Get("Location"), "/#token=")
	if answer.StatusCode != http.StatusFound || !found {
		f.t.Fatalf("sign in: %s %v", answer.Status, answer.Header)
	}
	return given
}

// exchange exchanges the text for a session, as the page does.
func (f *fixture) exchange(b *http.Client, given string) (int, string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+"/api/v1/"+door+"session", strings.NewReader(`{"token":"`+given+`"}`))
	must(f.t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := b.Do(r)
	must(f.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(f.t, err)
	return answer.StatusCode, string(body)
}

// TestAttackIssuerRedirect: an issuer that redirects gets no request of another server with the secret of the client, and one that answers without
// end is refused.
func TestAttackIssuerRedirect(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another server gets %s %s", r.Method, r.URL) }))
	t.Cleanup(thief.Close)
	issuer := httptest.NewServer(nil)
	t.Cleanup(issuer.Close)
	long := strings.Repeat(" ", 2<<20)
	issuer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, `{"issuer": "`+issuer.URL+`", "authorization_endpoint": "`+issuer.URL+`/auth", "token_endpoint": "`+issuer.URL+`/token"}`+long)
	})
	open := func() *oidc.Issuer {
		users, err := oidc.New(oidc.Config{Issuer: issuer.URL, ClientID: "ddiff", ClientSecret: "secret", Roles: roles}, nil)
		must(t, err)
		return users
	}
	if _, _, err := open().Begin("http://127.0.0.1/callback"); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long answer: %v", err)
	}
	long = ""
	users := open()
	_, memo, err := users.Begin("http://127.0.0.1/callback")
	must(t, err)
	state, _, _ := strings.Cut(memo, ".")
	if _, err := users.Finish(t.Context(), "http://127.0.0.1/callback", memo, state, "code"); err == nil {
		t.Error("a redirected exchange gives a token")
	}
}

// A sign-in that this browser did not begin, or that the issuer refuses, gives no session.
func TestAttackSignIns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	begin := func() (b *http.Client, authorize *url.URL) {
		b = browser(t)
		follow := b.CheckRedirect
		b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			authorize = r.URL
			return http.ErrUseLastResponse
		}
		if status, body := f.send(b, http.MethodGet, "session/login", ""); status != http.StatusFound {
			t.Fatalf("begin: %d %s", status, body)
		}
		b.CheckRedirect = follow
		return b, authorize
	}
	refused := func(name string, b *http.Client, path string, want int) {
		t.Helper()
		if status, body := f.send(b, http.MethodGet, path, ""); status != want || !strings.Contains(body, `<a href="/">`) {
			t.Errorf("%s: %d %s, want a page with %d", name, status, body, want)
		}
		if status, _ := f.send(b, http.MethodGet, "me", ""); status != 401 {
			t.Errorf("%s: then %d", name, status)
		}
	}
	b, authorize := begin()
	q := authorize.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("redirect_uri") != f.url+"/api/v1/session/callback" {
		t.Errorf("the address of the issuer is %s", authorize)
	}
	state := q.Get("state")
	refused("an unknown code", b, "session/callback?code=x&state="+state, 401)
	refused("a false state", b, "session/callback?code=x&state=y", 403)
	refused("another browser", browser(t), "session/callback?code=x&state="+state, 403)
	refused("no state", browser(t), "session/callback?code=x", 403)
	if _, body := f.send(b, http.MethodGet, "session/callback?error=<script>", ""); strings.Contains(body, "<script>") {
		t.Errorf("a page has the text of its address: %s", body)
	}
	refused("a refusal", b, "session/callback?error=access_denied&session_state=1&state="+state, 401)
	// The code of one sign-in with the memory of another one: the proof of the first is missing.
	var code string
	b, authorize = begin()
	stop := browser(t)
	stop.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		code = r.URL.Query().Get("code")
		return http.ErrUseLastResponse
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, authorize.String(), nil)
	must(t, err)
	answer, err := stop.Do(r)
	must(t, err)
	must(t, answer.Body.Close())
	victim, other := begin()
	refused("a code of another sign-in", victim, "session/callback?code="+code+"&state="+other.Query().Get("state"), 401)
	f.issuer.QueueUser(&mockoidc.MockUser{Subject: "18", Email: "eve@example.org", EmailVerified: true, Groups: []string{"guests"}})
	refused("a user without a role", b, "session/login", 403)
}

// The issuer may start after the coordinator.
func TestIssuerStartsLater(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t}
	var err error
	f.issuer, err = mockoidc.NewServer(nil)
	must(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	f.serve("http://"+address+mockoidc.IssuerBase, nil)
	if status, body := f.send(http.DefaultClient, http.MethodGet, "me", "a.b.c"); status != 503 {
		t.Errorf("without the issuer: %d %s", status, body)
	}
	if status, body := f.send(browser(t), http.MethodGet, "session/login", ""); status != 503 {
		t.Errorf("without the issuer: %d %s", status, body)
	}
	listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	must(t, err)
	must(t, f.issuer.Start(listener, nil))
	t.Cleanup(func() { must(t, f.issuer.Shutdown()) })
	deadline := time.Now().Add(time.Minute)
	for {
		status, body := f.send(http.DefaultClient, http.MethodGet, "me", f.idToken([]string{"research"}, nil))
		if status == 200 {
			return
		}
		if status != 503 || time.Now().After(deadline) {
			t.Fatalf("with the issuer: %d %s", status, body)
		}
		runtime.Gosched()
	}
}

// The keys of the issuer are read once: sessions survive its outage.
func TestIssuerOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	token := f.idToken([]string{"research"}, nil)
	for _, name := range []string{"before", "in an outage"} {
		if status, body := f.send(http.DefaultClient, http.MethodGet, "me", token); status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		must(t, f.issuer.Shutdown())
	}
}

// A token is not refused as a wrong one while the issuer does not answer with its keys.
func TestOutageBeforeKeys(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	token := f.idToken([]string{"research"}, nil)
	first := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if status, body := f.send(first, http.MethodGet, "session/login", ""); status != http.StatusFound { // reads the configuration alone
		t.Fatalf("begin a sign-in: %d %s", status, body)
	}
	must(t, f.issuer.Shutdown())
	if status, body := f.send(http.DefaultClient, http.MethodGet, "me", token); status != http.StatusServiceUnavailable {
		t.Errorf("without the keys: %d %s", status, body)
	}
}

// Issuers refuse scopes that they do not have, and many have no scope for groups.
func TestScopes(t *testing.T) {
	t.Parallel()
	for offered, want := range map[string]string{
		`["openid", "email", "profile"]`: "openid profile email", `["openid", "groups"]`: "openid profile email groups", `null`: "openid profile email",
	} {
		server := httptest.NewServer(nil)
		t.Cleanup(server.Close)
		server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer": "`+server.URL+`", "authorization_endpoint": "`+server.URL+`/auth", "scopes_supported": `+offered+`}`)
		})
		users, err := oidc.New(oidc.Config{Issuer: server.URL, ClientID: "ddiff", Roles: roles}, nil)
		must(t, err)
		address, _, err := users.Begin("http://localhost/callback")
		must(t, err)
		u, err := url.Parse(address)
		must(t, err)
		if got := u.Query().Get("scope"); got != want {
			t.Errorf("%s: %q, want %q", offered, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := oidc.Config{Issuer: "https://id.example.org", ClientID: "ddiff", Roles: roles}
	must(t, good.Validate())
	for want, change := range map[string]func(c *oidc.Config){
		"Issuer":   func(c *oidc.Config) { c.Issuer = "http://id.example.org" },
		"ClientID": func(c *oidc.Config) { c.ClientID = "" },
		"Roles":    func(c *oidc.Config) { c.Roles = map[string]api.Role{"a": "owner"} },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The address of the callback follows from the configuration, and never from the host that a request names.
func TestCallback(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	location := func(host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/api/v1/session/login", nil)
		must(t, err)
		r.Host = host
		r.Header.Set("X-Forwarded-Proto", "https")
		answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
		must(t, err)
		must(t, answer.Body.Close())
		at, err := url.Parse(answer.Header.Get("Location"))
		must(t, err)
		return answer.StatusCode, at.Query().Get("redirect_uri")
	}
	if status, at := location("evil.example"); status != http.StatusForbidden || at != "" {
		t.Errorf("a strange host: %d %s", status, at)
	}
	if status, at := location("localhost:8080"); status != http.StatusFound || at != "https://localhost:8080/api/v1/session/callback" {
		t.Errorf("this machine: %d %s", status, at)
	}
	f.public = "https://ddiff.example.org"
	f.serve(f.issuer.Issuer(), nil)
	for _, host := range []string{"evil.example", "ddiff.example.org"} {
		if status, at := location(host); status != http.StatusFound || at != "https://ddiff.example.org/api/v1/session/callback" {
			t.Errorf("with an address, host %s: %d %s", host, status, at)
		}
	}
}
