package serve

import (
	"context"
	"crypto/subtle"
	"maps"
	"sync"
	"time"

	"ddiff/api"
)

// localTokens has the only token of a server for one user, and the sessions of its browsers.
type localTokens struct {
	secret string

	mu       sync.Mutex
	sessions map[string]localSession // by key
}

type localSession struct {
	data []byte
	ends time.Time
}

// Token implements [Tokens].
func (l *localTokens) Token(_ context.Context, secret string) (api.Token, error) {
	if subtle.ConstantTimeCompare([]byte(l.secret), []byte(secret)) != 1 {
		return api.Token{}, api.NewError(api.ErrNoToken, "the token is not that of this process; open the address that it printed")
	}
	return api.Token{Role: api.Admin}, nil
}

// errOneToken is the error of changes of the tokens of a server that has only one.
func errOneToken() error {
	return api.NewError(api.ErrRefused, "this server has one token, for its own user; give the coordinator --require-tokens")
}

// Tokens implements [Tokens].
func (*localTokens) Tokens(context.Context) (api.Tokens, error) { return api.Tokens{}, errOneToken() }

// CreateToken implements [Tokens].
func (*localTokens) CreateToken(context.Context, string, api.Role, int) (api.Token, error) {
	return api.Token{}, errOneToken()
}

// RevokeToken implements [Tokens].
func (*localTokens) RevokeToken(context.Context, string) error { return errOneToken() }

// KeepSession implements [Tokens].
func (l *localTokens) KeepSession(_ context.Context, key string, data []byte, age time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.sessions, func(_ string, s localSession) bool { return now.After(s.ends) })
	if len(l.sessions) >= MaxSessions {
		return ErrSessions()
	}
	l.sessions[key] = localSession{data, now.Add(age)}
	return nil
}

// Session implements [Tokens].
func (l *localTokens) Session(_ context.Context, key string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, found := l.sessions[key]; found {
		return s.data, nil
	}
	return nil, ErrSession()
}

// EndSession implements [Tokens].
func (l *localTokens) EndSession(_ context.Context, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, key)
	return nil
}
