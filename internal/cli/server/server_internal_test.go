package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackDefaultAddress: another user of the machine who listens at the default address gets no token of $DDIFF_TOKEN or ddiff login.
func TestAttackDefaultAddress(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("XDG_CACHE_HOME", config)
	t.Setenv(Env, "")
	path := filepath.Join(config, "ddiff", "tokens.json")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"`+Default+`": "kept"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ named, variable, want string }{{"", "", ""}, {Default, "", "kept"}, {Default, "secret", "secret"}} {
		t.Setenv(envToken, c.variable)
		if got, err := (&Flags{Address: c.named}).token(); got != c.want || err != nil {
			t.Errorf("--server %q, token %q: %q, %v", c.named, c.variable, got, err)
		}
	}
	if _, err := (&Flags{}).Client(); err == nil || !strings.Contains(err.Error(), "name the server of $DDIFF_TOKEN with --server or $DDIFF_SERVER") {
		t.Errorf("$DDIFF_TOKEN without a server: %v", err)
	}
}

// TestLoginKeepsOtherTokens: a sign-in replaces a damaged file, and leaves one that it cannot trust as it is.
func TestLoginKeepsOtherTokens(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"role":"admin"}`)
	}))
	t.Cleanup(web.Close)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", home)
	path := filepath.Join(home, ".config", "ddiff", "tokens.json") // on every system, as in Python
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before string
		mode   os.FileMode
		want   string // in the file
		fails  string
	}{
		{`{"http://other": "kept"}`, 0o644, `{"http://other": "kept"}`, "run: chmod 600"},
		{`{"http://other": "kept"}`, 0o600, `"http://other": "kept"`, ""},
		{`null`, 0o600, web.URL, ""},
		{`{"http://oth`, 0o600, web.URL, ""},
	} {
		if err := os.WriteFile(path, []byte(c.before), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := new(Flags).Login(t.Context(), web.URL, "new")
		if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", c.before, err, c.fails)
		}
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), c.want) {
			t.Errorf("%s: the file has %s, %v", c.before, data, err)
		}
	}
}
