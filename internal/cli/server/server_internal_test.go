package server

import (
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
