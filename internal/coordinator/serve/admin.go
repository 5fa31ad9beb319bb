package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"ddiff/api"
	"ddiff/internal/regular"
)

// minAdminToken is the least length of the token of an administrator, in bytes.
const minAdminToken = 24

// adminToken accepts the token in a file as that of an administrator, beside others. It is stored nowhere else: each use reads the file, so that
// another content replaces it at once.
type adminToken struct {
	others
	file string
}

// others are Tokens whose method of the same name adminToken has too.
type others = Tokens

// WithAdmin adds the token in a file to tokens.
func WithAdmin(file string, tokens Tokens) (Tokens, error) {
	a := adminToken{tokens, file}
	_, err := a.read()
	return a, err
}

func (a adminToken) read() ([]byte, error) {
	data, err := regular.Read(a.file, regular.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	if data = bytes.TrimSpace(data); len(data) < minAdminToken {
		return nil, fmt.Errorf("%s has a token of %d bytes, at least %d are needed; make one: openssl rand -hex 32", a.file, len(data), minAdminToken)
	}
	return data, nil
}

// Token implements [Tokens].
func (a adminToken) Token(ctx context.Context, secret string) (api.Token, error) {
	if own, err := a.read(); err == nil { // while the file is replaced, the other tokens remain
		want, got := sha256.Sum256(own), sha256.Sum256([]byte(secret))
		if subtle.ConstantTimeCompare(want[:], got[:]) == 1 {
			return api.Token{ID: "admin-token", Role: api.Admin}, nil
		}
	}
	return a.others.Token(ctx, secret)
}
