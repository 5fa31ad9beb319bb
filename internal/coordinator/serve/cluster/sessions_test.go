package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ddiff/api"
	"ddiff/internal/coordinator/serve"
)

// door is the path of a browser's session.
const door = "/api/v1/~0123456789abcdef0123456789abcdef"

// signIn signs a browser in at a door.
func signIn(t *testing.T, server, door, token string, header ...string) answer {
	t.Helper()
	return send(t, http.MethodPost, server+door+"/session", `{"token":"`+token+`"}`, append(header, "Content-Type: application/json", "Authorization: none")...)
}

// sessionOf returns the header of the cookie that an answer sets.
func sessionOf(t *testing.T, a answer) string {
	t.Helper()
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"ddiff_session=", "HttpOnly", "SameSite=Strict", "Max-Age="} {
		if !strings.Contains(cookie, part) {
			t.Fatalf("the cookie %q lacks %s: %d %s", cookie, part, a.status, a.body)
		}
	}
	if strings.Contains(cookie, "Path") {
		t.Errorf("the cookie %q has a path that a proxy may not have", cookie)
	}
	return "Cookie: " + strings.Split(cookie, ";")[0]
}

// TestAttackSessions: the cookie of a browser is not the token, and is worth nothing as one, at another door, without a door, for the page of
// another port, and after its end; its door is worth nothing without it. It works at every coordinator.
func TestAttackSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	one, two := f.serve(c, true), f.serve(f.open(), true)
	token := f.token(c, "ann", api.Submitter)
	session := sessionOf(t, signIn(t, one, door, token))
	stolen := strings.TrimPrefix(session, "Cookie: ddiff_session=")
	if strings.Contains(token, stolen) || strings.Contains(stolen, token) {
		t.Errorf("the cookie %s is the token", stolen)
	}
	get := func(at string, header ...string) int {
		t.Helper()
		return send(t, http.MethodGet, at, "", append(header, "Authorization: none")...).status
	}
	for _, at := range []string{one, two} {
		if status := get(at+door+"/me", session); status != http.StatusOK {
			t.Errorf("the session at a coordinator: %d", status)
		}
	}
	other := strings.Replace(door, "0123", "3210", 1)
	for name, status := range map[string]int{
		"as a token":        send(t, http.MethodGet, one+"/api/v1/me", "", "Authorization: Bearer "+stolen).status,
		"as one at a door":  send(t, http.MethodGet, one+door+"/me", "", "Authorization: Bearer "+stolen).status,
		"without a door":    get(one+"/api/v1/me", session),
		"at another door":   get(one+other+"/me", session),
		"of another port":   get(one+door+"/me", session, "Sec-Fetch-Site: same-site"),
		"of another origin": get(one+door+"/me", session, "Origin: http://127.0.0.1:1"),
		"the door alone":    get(one + door + "/me"),
		"a false cookie":    get(one+door+"/me", session+"x"),
	} {
		if status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, status)
		}
	}
	if a := signIn(t, one, "/api/v1", token); a.status != http.StatusUnprocessableEntity || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a session without a door: %d %s", a.status, a.body)
	}
	for change, err := range f.board.Watch(t.Context(), "session.") {
		must(t, err)
		if strings.Contains(change.Key+string(change.Data), stolen) || strings.Contains(string(change.Data), token) {
			t.Errorf("a reader of the board gets the session: %s %s", change.Key, change.Data)
		}
		if change.Ready {
			break
		}
	}
	next := sessionOf(t, send(t, http.MethodPost, two+door+"/session", `{"token":"`+token+`"}`, "Content-Type: application/json", "Authorization: none", session))
	if status := get(one+door+"/me", session); status != http.StatusUnauthorized {
		t.Errorf("a session that the browser has replaced: %d", status)
	}
	if a := send(t, http.MethodDelete, one+door+"/session", "", "Authorization: none", next); a.status != http.StatusOK {
		t.Errorf("sign out: %d %s", a.status, a.body)
	}
	if status := get(two+door+"/me", next); status != http.StatusUnauthorized {
		t.Errorf("a session after its end: %d", status)
	}
}

// TestAttackSessionsFlood: a token has a bounded number of sessions, on the board of a cluster and in the memory of a server for one user, and
// others sign in as before.
func TestAttackSessionsFlood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	cluster, local := f.serve(c, true), f.serve(c, false)
	eve := f.token(c, "eve", api.Viewer)
	for server, token := range map[string]string{cluster: eve, local: localSecret} {
		for i := range serve.MaxSessions + 1 {
			a := signIn(t, server, fmt.Sprintf("/api/v1/~%032x", i), token)
			if full := i == serve.MaxSessions; full != (a.status == http.StatusConflict) || full && !strings.Contains(a.body, "sign out of one") {
				t.Fatalf("session %d: %d %s", i, a.status, a.body)
			}
		}
	}
	sessionOf(t, signIn(t, cluster, door, f.token(c, "root", api.Admin)))
}
