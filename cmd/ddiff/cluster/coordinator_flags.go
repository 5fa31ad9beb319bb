package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/coordinator/notify"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/oidc"
	"ddiff/internal/queue"
	"ddiff/internal/regular"
	"ddiff/storage"
)

// notifyFlags permit notifications.
type notifyFlags struct {
	hosts  []string
	secret string
}

func (n *notifyFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&n.hosts, "notify-host", nil, "`servers` to which campaigns may send notifications, as in hooks.example.org or hooks.example.org:8443 (default: none)")
	f.StringVar(&n.secret, "notify-secret", "", "`file` with the key that signs notifications, at least 24 bytes")
}

// key reads the key, nil without a server.
func (n *notifyFlags) key() ([]byte, error) {
	if len(n.hosts) == 0 {
		if n.secret != "" {
			return nil, cli.Usage(errors.New("--notify-secret: nothing may be sent; give --notify-host too"))
		}
		return nil, nil
	}
	if n.secret == "" {
		return nil, cli.Usage(errors.New("--notify-host needs a key; give --notify-secret FILE"))
	}
	secret, err := regular.Read(n.secret, regular.MaxConfigBytes)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--notify-secret: %w", err))
	}
	if secret = bytes.TrimSpace(secret); len(secret) < 24 {
		return nil, cli.Usage(fmt.Errorf("--notify-secret: %s has %d bytes, at least 24 are needed", n.secret, len(secret)))
	}
	return secret, nil
}

// open returns the notifier with a key, nil without one.
func (n *notifyFlags) open(b *queue.Board, s storage.Store, key []byte, logger *slog.Logger) *notify.Notifier {
	if key == nil {
		return nil
	}
	return notify.New(notify.Config{Board: b, Store: s, Hosts: n.hosts, Secret: key, Logger: logger})
}

// oidcFlags describe an OpenID Connect issuer whose users may use the API.
type oidcFlags struct {
	issuer, client, secret, owner, groups string
	roles                                 []string

	config *oidc.Config // after check, nil without an issuer
}

// The defaults of flags.
const defaultOwner, defaultGroups = "sub", "groups"

func (o *oidcFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.issuer, "oidc-issuer", "", "`address` of an OpenID Connect issuer whose ID tokens are access tokens of --listen (default: none)")
	f.StringVar(&o.client, "oidc-client", "", "`id` of the client at --oidc-issuer")
	f.StringVar(&o.secret, "oidc-secret", "", "`file` with the secret of --oidc-client (default: a public client)")
	f.StringVar(&o.owner, "oidc-owner", defaultOwner, "`claim` with the owner; users must not be able to choose it, email must be verified")
	f.StringVar(&o.groups, "oidc-groups", defaultGroups, "`claim` with the groups")
	f.StringArrayVar(&o.roles, "oidc-role", nil, "`GROUP=ROLE` gives a group the role viewer, submitter or admin; the group * is every user")
}

func (o *oidcFlags) check() error {
	if o.issuer == "" {
		if o.client != "" || o.secret != "" || len(o.roles) > 0 || o.owner != defaultOwner || o.groups != defaultGroups {
			return errors.New("--oidc-client, --oidc-secret, --oidc-owner, --oidc-groups and --oidc-role are for --oidc-issuer; give it")
		}
		return nil
	}
	c := oidc.Config{Issuer: o.issuer, ClientID: o.client, OwnerClaim: o.owner, GroupsClaim: o.groups, Roles: map[string]api.Role{}}
	switch {
	case o.client == "":
		return errors.New("--oidc-issuer needs a client; give --oidc-client ID")
	case len(o.roles) == 0:
		return errors.New("--oidc-issuer: no user has a role; give --oidc-role GROUP=ROLE")
	}
	for _, text := range o.roles {
		at := strings.LastIndex(text, "=") // a group may contain one
		if at < 1 {
			return fmt.Errorf("--oidc-role: %q is no GROUP=ROLE; give one as in research=submitter", text)
		}
		group, role := text[:at], api.Role(text[at+1:])
		if _, repeated := c.Roles[group]; repeated {
			return fmt.Errorf("--oidc-role: %s is repeated; give each group one role", group)
		}
		c.Roles[group] = role
	}
	if o.secret != "" {
		data, err := regular.Read(o.secret, regular.MaxConfigBytes)
		if err != nil {
			return fmt.Errorf("--oidc-secret: %w", err)
		}
		if c.ClientSecret = string(bytes.TrimSpace(data)); c.ClientSecret == "" {
			return fmt.Errorf("--oidc-secret: %s is empty; leave the flag out for a public client", o.secret)
		}
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("--oidc-issuer and --oidc-role: %w", err)
	}
	o.config = &c
	return nil
}

// accept lets the users of the issuer in beside those with tokens.
func (o *oidcFlags) accept(s *serve.Config) error {
	if o.config == nil {
		return nil
	}
	issuer, err := oidc.New(*o.config, s.Tokens)
	if err != nil {
		return err
	}
	s.Tokens, s.Login = issuer, issuer
	return nil
}
