package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"ddiff/internal/regular"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
)

const (
	// tokenWord begins a secret, so that tools which look for leaked secrets know it.
	tokenWord = "ddiff_"
	// tokenID is the number of digits of a token's id.
	tokenID = 12
	// maxTokenDays is the longest life of a token.
	maxTokenDays = 3650
)

func tokenKey(secret string) string {
	return manifest.KeyTokenPrefix + regular.SHA256([]byte(secret))
}

// Token returns the token with a secret.
func (c *Cluster) Token(ctx context.Context, secret string) (t api.Token, err error) {
	var stored storedToken
	data, _, err := c.cfg.Board.Get(ctx, tokenKey(secret))
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		stored.Revoked = true
	case err != nil:
		return t, err
	default:
		if err := json.Unmarshal(data, &stored); err != nil {
			return t, fmt.Errorf("read a token: %w", err)
		}
	}
	if stored.Revoked {
		return t, api.NewError(api.ErrNoToken, "the access token is unknown or was revoked")
	}
	t = stored.Token
	if !c.cfg.Now().Before(t.Ends) {
		return api.Token{}, api.NewError(api.ErrNoToken, "the access token ended at "+t.Ends.Format(time.RFC3339)+"; an administrator creates another: ddiff token create")
	}
	return t, nil
}

// Tokens lists the tokens in the order of their creation.
func (c *Cluster) Tokens(ctx context.Context) (api.Tokens, error) {
	found, err := board.Records(ctx, c.cfg.Board, manifest.KeyTokenPrefix)
	if err != nil {
		return api.Tokens{}, fmt.Errorf("list tokens: %w", err)
	}
	out := api.Tokens{Tokens: []api.Token{}}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		var t storedToken
		if json.Unmarshal(found[key].Data, &t) == nil && !t.Revoked {
			out.Tokens = append(out.Tokens, t.Token)
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
	t := api.Token{ID: key[len(manifest.KeyTokenPrefix):][:tokenID], Owner: owner, Role: role, Created: c.cfg.Now().UTC()}
	t.Ends = t.Created.AddDate(0, 0, cmp.Or(days, api.TokenDays))
	ask := board.AskOf(ctx, "create token")
	data, err := json.Marshal(storedToken{Token: t, Ask: &ask})
	if err == nil {
		_, err = c.cfg.Board.Create(ctx, key, data)
	}
	if err != nil {
		return api.Token{}, fmt.Errorf("create a token: %w", err)
	}
	t.Secret = secret
	return t, nil
}

// RevokeToken ends the token with an id. The leader removes its record, and the store remembers that.
func (c *Cluster) RevokeToken(ctx context.Context, id string) error {
	err := c.missed.Look(ctx, func() error { return c.revoke(ctx, id) })
	if errors.Is(err, queue.ErrNoRecord) {
		return api.NewError(api.ErrNotFound, fmt.Sprintf("no token has the id %s; see: ddiff token list", id))
	}
	return err
}

func (c *Cluster) revoke(ctx context.Context, id string) error {
	keys, err := c.cfg.Board.Keys(ctx, manifest.KeyTokenPrefix)
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	var t storedToken
	var data []byte
	var revision uint64
	i := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, manifest.KeyTokenPrefix+id) })
	known := len(id) == tokenID && i >= 0
	if known {
		data, revision, err = c.cfg.Board.Get(ctx, keys[i])
		known = err == nil && json.Unmarshal(data, &t) == nil && !t.Revoked
	}
	switch {
	case err != nil && !errors.Is(err, queue.ErrNoRecord):
		return fmt.Errorf("revoke token %s: %w", id, err)
	case !known:
		return queue.ErrNoRecord
	}
	ask := board.AskOf(ctx, "revoke token")
	t.Revoked, t.Ask = true, &ask
	if data, err = json.Marshal(t); err == nil {
		_, err = c.cfg.Board.Update(ctx, keys[i], data, revision)
	}
	if errors.Is(err, queue.ErrConflict) { // with the leader
		return c.revoke(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	return c.awaitRevoked(ctx, keys[i])
}

// awaitRevoked waits up to storeLimit for the leader to store a revocation, so that no backup of the board undoes it.
func (c *Cluster) awaitRevoked(ctx context.Context, key string) error {
	for end := time.Now().Add(storeLimit); time.Now().Before(end); {
		if _, _, err := c.cfg.Board.Get(ctx, key); errors.Is(err, queue.ErrNoRecord) {
			return nil
		}
		if err := retry.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil // without a leader, the token has ended all the same
}

// storedToken is the record of a token, see [manifest.Token].
type storedToken struct {
	api.Token
	Revoked bool          `json:"revoked,omitempty"`
	Ask     *manifest.Ask `json:"ask,omitempty"`
}
