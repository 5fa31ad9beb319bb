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
	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/storage"
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
	return record.KeyTokenPrefix + regular.SHA256([]byte(secret))
}

// Token returns the token with a secret.
func (c *Cluster) Token(ctx context.Context, secret string) (t api.Token, err error) {
	data, _, err := c.cfg.Board.Get(ctx, tokenKey(secret))
	if errors.Is(err, queue.ErrNoRecord) {
		return t, api.NewError(api.ErrNoToken, "the access token is unknown or was revoked")
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return api.Token{}, fmt.Errorf("read a token: %w", err)
	}
	if !c.cfg.Now().Before(t.Ends) {
		return api.Token{}, api.NewError(api.ErrNoToken, "the access token ended at "+t.Ends.Format(time.RFC3339)+"; an administrator creates another: ddiff token create")
	}
	return t, nil
}

// Tokens lists the tokens in the order of their creation.
func (c *Cluster) Tokens(ctx context.Context) (api.Tokens, error) {
	found, err := board.Records(ctx, c.cfg.Board, record.KeyTokenPrefix)
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

// HasTokens reports whether there is a token: on the board, or in the store, from which a leader gives a board that has lost it.
func (c *Cluster) HasTokens(ctx context.Context) (bool, error) {
	all, err := c.Tokens(ctx)
	if err != nil || len(all.Tokens) > 0 {
		return err == nil, err
	}
	for info, err := range c.cfg.Store.List(ctx, board.TokenFolder) {
		if err != nil {
			return false, fmt.Errorf("list tokens: %w", err)
		}
		sum := strings.TrimSuffix(strings.TrimPrefix(info.Key, board.TokenFolder), ".json")
		if _, err := c.cfg.Store.Stat(ctx, board.RevokedFolder+sum); errors.Is(err, storage.ErrNotFound) {
			return true, nil
		}
	}
	return false, nil
}

// CreateToken returns a new token with its secret of 256 random bits, which ends after some days; 0 for [api.TokenDays]. The cluster has its
// SHA-256 only.
func (c *Cluster) CreateToken(ctx context.Context, owner string, role api.Role, days int) (api.Token, error) {
	if owner == "" || !slices.Contains(api.Roles(), role) {
		return api.Token{}, api.NewError(api.ErrInvalid, fmt.Sprintf("a token needs an owner, and the role viewer, submitter or admin; got %q and %q", owner, role))
	}
	if err := record.CheckOwner(owner); err != nil {
		return api.Token{}, api.NewError(api.ErrInvalid, "the owner is "+err.Error())
	}
	if days < 0 || days > maxTokenDays {
		return api.Token{}, api.NewError(api.ErrInvalid, fmt.Sprintf("a token ends after 1 to %d days; got %d", maxTokenDays, days))
	}
	var random [32]byte
	rand.Read(random[:])
	secret := tokenWord + hex.EncodeToString(random[:])
	key := tokenKey(secret)
	t := api.Token{ID: key[len(record.KeyTokenPrefix):][:tokenID], Owner: owner, Role: role, Created: c.cfg.Now().UTC()}
	t.Ends = t.Created.AddDate(0, 0, cmp.Or(days, api.TokenDays))
	body := board.Token{Token: t, SHA256: strings.TrimPrefix(key, record.KeyTokenPrefix)}
	if err := board.Do(ctx, c.cfg.Board, board.Verb{Kind: board.VerbCreateToken}, body, nil); err != nil {
		return api.Token{}, fmt.Errorf("create a token: %w", err)
	}
	t.Secret = secret
	return t, nil
}

// RevokeToken ends the token with an id, for ever.
func (c *Cluster) RevokeToken(ctx context.Context, id string) error {
	return board.Do(ctx, c.cfg.Board, board.Verb{Kind: board.VerbRevokeToken}, id, nil)
}
