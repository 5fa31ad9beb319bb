package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/api"
	"ddiff/coordinator/serve"
	"ddiff/coordinator/serve/oidc"
	"ddiff/internal/cli"
	"ddiff/internal/regular"
)

// oidcFlags describe an OpenID Connect issuer whose users may use the API.
type oidcFlags struct {
	issuer, client, secret, owner, groups string
	roles                                 []string
}

func (o *oidcFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.issuer, "oidc-issuer", "", "`address` of an OpenID Connect issuer whose ID tokens are access tokens of --listen (default: none)")
	f.StringVar(&o.client, "oidc-client", "", "`id` of the client at --oidc-issuer")
	f.StringVar(&o.secret, "oidc-secret", "", "`file` with the secret of --oidc-client (default: a public client)")
	f.StringVar(&o.owner, "oidc-owner", "sub", "`claim` with the owner; users must not be able to choose it, email must be verified")
	f.StringVar(&o.groups, "oidc-groups", "groups", "`claim` with the groups")
	f.StringArrayVar(&o.roles, "oidc-role", nil, "`GROUP=ROLE` gives a group the role viewer, submitter or admin; the group * is every user")
}

// config reads the flags. The second value is false without an issuer.
func (o *oidcFlags) config() (c oidc.Config, given bool, err error) {
	if o.issuer == "" {
		if o.client != "" || o.secret != "" || len(o.roles) > 0 {
			return c, false, cli.Usage(errors.New("--oidc-client, --oidc-secret and --oidc-role are for --oidc-issuer; give it"))
		}
		return c, false, nil
	}
	c = oidc.Config{Issuer: o.issuer, ClientID: o.client, OwnerClaim: o.owner, GroupsClaim: o.groups, Roles: map[string]api.Role{}}
	switch {
	case o.client == "":
		return c, false, cli.Usage(errors.New("--oidc-issuer needs a client; give --oidc-client ID"))
	case len(o.roles) == 0:
		return c, false, cli.Usage(errors.New("--oidc-issuer: no user has a role; give --oidc-role GROUP=ROLE"))
	}
	for _, text := range o.roles {
		at := strings.LastIndex(text, "=") // a group may contain one
		if at < 1 {
			return c, false, cli.Usage(fmt.Errorf("--oidc-role: %q is no GROUP=ROLE; give one as in research=submitter", text))
		}
		c.Roles[text[:at]] = api.Role(text[at+1:])
	}
	if o.secret != "" {
		data, err := regular.Read(o.secret, regular.MaxConfigBytes)
		if err != nil {
			return c, false, cli.Usage(fmt.Errorf("--oidc-secret: %w", err))
		}
		c.ClientSecret = string(bytes.TrimSpace(data))
	}
	return c, true, nil
}

// accept lets the users of the issuer in beside those with tokens.
func (o *oidcFlags) accept(s *serve.Config) error {
	c, given, err := o.config()
	if err != nil || !given {
		return err
	}
	c.Tokens = s.Tokens
	issuer, err := oidc.New(c)
	if err != nil {
		return cli.Usage(err)
	}
	s.Tokens, s.Login = issuer, issuer
	return nil
}
