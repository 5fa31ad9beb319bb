package cluster

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/api"
)

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
