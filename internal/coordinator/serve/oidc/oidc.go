// Package oidc accepts the ID tokens of an OpenID Connect issuer as access tokens of the API, and signs browsers in with the authorization
// code flow and PKCE.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"ddiff/api"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/outbound"
	"ddiff/internal/record"
)

// Config describes an issuer. Fields without a stated default are required.
type Config struct {
	// Issuer is the address below which the issuer serves its configuration, https except on this machine.
	Issuer string
	// ClientID is the client that ID tokens must be for. ClientSecret is its secret; empty for a public client.
	ClientID, ClientSecret string
	// OwnerClaim is the claim with the owner. Default: sub. An email counts only if email_verified is true.
	OwnerClaim string
	// GroupsClaim is the claim with the groups, a list or one text. Default: groups.
	GroupsClaim string
	// Roles maps groups to roles; the highest one counts, and AnyGroup is every user of the client.
	Roles map[string]api.Role
}

// AnyGroup is the key of the role of users without a group in Config.Roles.
const AnyGroup = "*"

// Validate returns an error that names the first wrong field.
func (c Config) Validate() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !serve.Local(u.Host)):
		return fmt.Errorf("Issuer: %q is no https address", c.Issuer)
	case c.ClientID == "":
		return errors.New("ClientID is missing")
	case len(c.Roles) == 0:
		return errors.New("Roles is empty: nobody could sign in")
	}
	for group, role := range c.Roles {
		if !slices.Contains(api.Roles(), role) {
			return fmt.Errorf("Roles: group %s has the role %q; want viewer, submitter or admin", group, role)
		}
	}
	return nil
}

const (
	// timeout is the limit of a request to the issuer, pause the time between two attempts to read its configuration.
	timeout = 10 * time.Second
	pause   = time.Second
	// maxAnswer is the largest answer of the issuer in bytes.
	maxAnswer = 1 << 20
)

type tokens interface{ serve.Tokens }

// Issuer accepts ID tokens beside other access tokens. Its methods may be called concurrently.
type Issuer struct {
	tokens
	cfg Config
	ctx context.Context // for requests to the issuer, with a client of their own

	mu       sync.Mutex
	provider *oidc.Provider // nil until the issuer has answered
	failed   error          // of the last attempt
	again    time.Time      // before it, failed is the answer
}

// New checks the configuration. The other tokens are those of others. The issuer is asked when it is first needed, so that it may start later.
func New(cfg Config, others serve.Tokens) (*Issuer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure OpenID Connect: %w", err)
	}
	if cfg.OwnerClaim == "" {
		cfg.OwnerClaim = "sub"
	}
	if cfg.GroupsClaim == "" {
		cfg.GroupsClaim = "groups"
	}
	client := outbound.Client(nil, maxAnswer) // it sends the secret of the client, and codes
	client.Timeout = timeout
	return &Issuer{tokens: others, cfg: cfg, ctx: oidc.ClientContext(context.Background(), client)}, nil
}

// open returns the issuer's configuration.
func (i *Issuer) open() (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.provider != nil:
		return i.provider, nil
	case time.Now().Before(i.again): // requests that have waited for an attempt share its answer
		return nil, i.failed
	}
	p, err := oidc.NewProvider(i.ctx, i.cfg.Issuer)
	if err != nil {
		i.failed = api.NewError(api.ErrUnavailable, "read the configuration of the OpenID Connect issuer: "+oneLine(err))
		i.again = time.Now().Add(pause)
		return nil, i.failed
	}
	i.provider = p
	return p, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// Token returns the token with a secret, which may be an ID token: three parts in base64, separated by dots.
func (i *Issuer) Token(ctx context.Context, secret string) (api.Token, error) {
	if strings.Count(secret, ".") != 2 {
		return i.tokens.Token(ctx, secret)
	}
	_, t, err := i.verify(ctx, secret)
	return t, err
}

// verify checks an ID token and returns what it permits. A token that names its client, as one for several must, is issued to this one: another
// client, which has the tokens of its users, could act as them here otherwise.
func (i *Issuer) verify(ctx context.Context, raw string) (*oidc.IDToken, api.Token, error) {
	p, err := i.open()
	if err != nil {
		return nil, api.Token{}, err
	}
	id, err := p.Verifier(&oidc.Config{ClientID: i.cfg.ClientID}).Verify(ctx, raw)
	if err != nil && strings.Contains(err.Error(), ": fetching keys ") { // this error has no type
		return nil, api.Token{}, api.NewError(api.ErrUnavailable, "read the keys of the OpenID Connect issuer: "+oneLine(err))
	}
	if err != nil {
		return nil, api.Token{}, api.NewError(api.ErrNoToken, "the ID token is not valid: "+oneLine(err))
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, api.Token{}, api.NewError(api.ErrNoToken, "the ID token is not valid: "+oneLine(err))
	}
	if party, stated := claims["azp"]; (stated || len(id.Audience) > 1) && party != i.cfg.ClientID {
		return nil, api.Token{}, api.NewError(api.ErrNoToken, "the ID token was issued to another client, or is for several, and its claim azp is not "+i.cfg.ClientID+"; request one for this client")
	}
	t, err := i.permitted(id, claims)
	return id, t, err
}

// maxOwner is the largest length of an owner in bytes.
const maxOwner = 100

// permitted returns the owner and the role of a user.
func (i *Issuer) permitted(id *oidc.IDToken, claims map[string]any) (api.Token, error) {
	owner, _ := claims[i.cfg.OwnerClaim].(string)
	verified, _ := claims["email_verified"].(bool)
	switch {
	case owner == "" || len(owner) > maxOwner || strings.ContainsFunc(owner, unicode.IsControl):
		return api.Token{}, api.NewError(api.ErrDenied, fmt.Sprintf("the claim %s of the ID token is no text of at most %d bytes", i.cfg.OwnerClaim, maxOwner))
	case record.CheckOwner(owner) != nil:
		return api.Token{}, api.NewError(api.ErrDenied, fmt.Sprintf("the claim %s of the ID token is %v", i.cfg.OwnerClaim, record.CheckOwner(owner)))
	case i.cfg.OwnerClaim == "email" && !verified:
		return api.Token{}, api.NewError(api.ErrDenied, "the issuer has not verified the email of the ID token")
	}
	role := i.cfg.Roles[AnyGroup]
	groups, isList := claims[i.cfg.GroupsClaim].([]any)
	if !isList {
		groups = []any{claims[i.cfg.GroupsClaim]}
	}
	for _, g := range groups {
		if name, isText := g.(string); isText && rank(i.cfg.Roles[name]) > rank(role) {
			role = i.cfg.Roles[name]
		}
	}
	if role == "" {
		return api.Token{}, api.NewError(api.ErrDenied, "no group of "+owner+" has a role here; an administrator maps groups with --oidc-role")
	}
	sum := sha256.Sum256([]byte(id.Issuer + "\n" + id.Subject))
	return api.Token{ID: hex.EncodeToString(sum[:6]), Owner: owner, Role: role, Created: id.IssuedAt.UTC(), Ends: id.Expiry.UTC()}, nil
}

func rank(r api.Role) int { return slices.Index(api.Roles(), r) }

func (i *Issuer) oauth(p *oidc.Provider, callback string) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	var offered struct {
		Scopes []string `json:"scopes_supported"`
	}
	if p.Claims(&offered) == nil && slices.Contains(offered.Scopes, "groups") { // other issuers refuse it, and may have the claim all the same
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{ClientID: i.cfg.ClientID, ClientSecret: i.cfg.ClientSecret, Endpoint: p.Endpoint(), RedirectURL: callback, Scopes: scopes}
}

// Begin returns the address of the issuer that signs a browser in and then sends it to callback. The browser keeps memo until then.
func (i *Issuer) Begin(callback string) (address, memo string, err error) {
	p, err := i.open()
	if err != nil {
		return "", "", err
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	address = i.oauth(p, callback).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier))
	return address, strings.Join([]string{state, nonce, verifier}, "."), nil
}

// Finish exchanges the code that the issuer gave to a browser for an ID token.
func (i *Issuer) Finish(ctx context.Context, callback, memo, state, code string) (secret string, err error) {
	parts := strings.Split(memo, ".")
	if len(parts) != 3 || state != parts[0] {
		return "", api.NewError(api.ErrDenied, "this sign-in was not begun by this browser, or too long ago; begin again")
	}
	p, err := i.open()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, i.ctx.Value(oauth2.HTTPClient)), timeout)
	defer cancel()
	answer, err := i.oauth(p, callback).Exchange(ctx, code, oauth2.VerifierOption(parts[2]))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		return "", api.NewError(api.ErrNoToken, "the issuer refuses the code of the sign-in: "+refused.ErrorCode)
	case err != nil:
		return "", api.NewError(api.ErrUnavailable, "exchange the code of the sign-in: "+oneLine(err))
	}
	secret, _ = answer.Extra("id_token").(string)
	id, _, err := i.verify(ctx, secret)
	switch {
	case err != nil:
		return "", err
	case id.Nonce != parts[1]:
		return "", api.NewError(api.ErrNoToken, "the ID token belongs to another sign-in")
	}
	return secret, nil
}
