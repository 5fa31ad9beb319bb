package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

const (
	// tokenPrefix + the SHA-256 of the secret is the key of a token on the board.
	tokenPrefix = "token."
	// tokenWord begins a secret, so that tools which look for leaked secrets know it.
	tokenWord = "ddiff_"
	// tokenID is the number of digits of a token's id.
	tokenID = 12
	// maxTokenDays is the longest life of a token.
	maxTokenDays = 3650
)

func tokenKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return tokenPrefix + hex.EncodeToString(sum[:])
}

// Token returns the token with a secret.
func (c *Cluster) Token(ctx context.Context, secret string) (t api.Token, err error) {
	data, _, err := c.cfg.Board.Get(ctx, tokenKey(secret))
	if errors.Is(err, queue.ErrNoRecord) {
		return t, api.NewError(api.ErrNoToken, "the access token is unknown or was revoked")
	}
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("read a token: %w", err)
	}
	if !c.cfg.Now().Before(t.Ends) {
		return api.Token{}, api.NewError(api.ErrNoToken, "the access token ended at "+t.Ends.Format(time.RFC3339)+"; an administrator creates another: ddiff token create")
	}
	return t, nil
}

// Tokens lists the tokens in the order of their creation.
func (c *Cluster) Tokens(ctx context.Context) (api.Tokens, error) {
	found, err := board.Records(ctx, c.cfg.Board, tokenPrefix)
	if err != nil {
		return api.Tokens{}, fmt.Errorf("list tokens: %w", err)
	}
	out := api.Tokens{Tokens: []api.Token{}}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		var t api.Token
		if json.Unmarshal(found[key].Data, &t) == nil {
			out.Tokens = append(out.Tokens, t)
		}
	}
	slices.SortStableFunc(out.Tokens, func(a, b api.Token) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// CreateToken returns a new token with its secret of 256 random bits, which ends after some days; 0 for [api.TokenDays]. The board has its
// SHA-256 only.
func (c *Cluster) CreateToken(ctx context.Context, owner string, role api.Role, days int) (api.Token, error) {
	if owner == "" || !slices.Contains(api.Roles(), role) {
		return api.Token{}, api.NewError(api.ErrInvalid, fmt.Sprintf("a token needs an owner, and the role viewer, submitter or admin; got %q and %q", owner, role))
	}
	if err := manifest.CheckOwner(owner); err != nil {
		return api.Token{}, api.NewError(api.ErrInvalid, "the owner is "+err.Error())
	}
	if days < 0 || days > maxTokenDays {
		return api.Token{}, api.NewError(api.ErrInvalid, fmt.Sprintf("a token ends after 1 to %d days; got %d", maxTokenDays, days))
	}
	var random [32]byte
	rand.Read(random[:])
	secret := tokenWord + hex.EncodeToString(random[:])
	key := tokenKey(secret)
	t := api.Token{ID: key[len(tokenPrefix):][:tokenID], Owner: owner, Role: role, Created: c.cfg.Now().UTC()}
	t.Ends = t.Created.AddDate(0, 0, cmp.Or(days, api.TokenDays))
	data, err := json.Marshal(t)
	if err == nil {
		_, err = c.cfg.Board.Create(ctx, key, data)
	}
	if err != nil {
		return api.Token{}, fmt.Errorf("create a token: %w", err)
	}
	t.Secret = secret
	return t, nil
}

// RevokeToken removes the token with an id.
func (c *Cluster) RevokeToken(ctx context.Context, id string) error {
	keys, err := c.cfg.Board.Keys(ctx, tokenPrefix)
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	i := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, tokenPrefix+id) })
	if len(id) != tokenID || i < 0 {
		return api.NewError(api.ErrNotFound, fmt.Sprintf("no token has the id %s; see: ddiff token list", id))
	}
	if err := c.cfg.Board.Delete(ctx, keys[i]); err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	return nil
}
