package cluster

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/api"
)

func TestParseQuotas(t *testing.T) {
	t.Parallel()
	q, err := parseQuotas([]string{"a:b:items=5,cost=2", "*:seconds=60"}, 0.5)
	if err != nil || q.Of("a:b").Items != 5 || q.Of("bob").Seconds != 60 {
		t.Errorf("%+v, %v", q, err)
	}
	for _, tt := range []struct {
		flags []string
		price float64
		want  string
	}{
		{nil, -1, "--price"},
		{nil, math.Inf(1), "--price"},
		{nil, math.NaN(), "--price"},
		{[]string{"items=5"}, 1, "has no owner"},
		{[]string{":items=5"}, 1, "has no owner"},
		{[]string{"ann:hours=5"}, 1, "--quota ann"},
		{[]string{"ann:items=5", "ann:items=6"}, 1, "repeated"},
		{[]string{"ann:cost=5"}, 0, "give --price too"},
	} {
		if _, err := parseQuotas(tt.flags, tt.price); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.flags, err, tt.want)
		}
	}
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
		a := apiFlags{oidc: flags}
		if err := a.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", flags, err, want)
		}
	}
}
