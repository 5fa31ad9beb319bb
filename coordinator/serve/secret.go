package serve

import (
	"context"
	"crypto/subtle"
	"net/http"

	"ddiff/api"
)

// localSecret is the only token of a server for one user.
type localSecret string

// Token implements [Tokens].
func (l localSecret) Token(_ context.Context, secret string) (api.Token, error) {
	if subtle.ConstantTimeCompare([]byte(l), []byte(secret)) != 1 {
		return api.Token{}, api.NewError(api.ErrNoToken, "the token is not that of this process; open the address that it printed")
	}
	return api.Token{Role: api.Admin}, nil
}

// errOneToken is the error of changes of the tokens of a server that has only one.
func errOneToken() error {
	return api.NewError(api.ErrRefused, "this server has one token, for its own user; give the coordinator --require-tokens")
}

// Tokens implements [Tokens].
func (localSecret) Tokens(context.Context) (api.Tokens, error) { return api.Tokens{}, errOneToken() }

// CreateToken implements [Tokens].
func (localSecret) CreateToken(context.Context, string, api.Role, int) (api.Token, error) {
	return api.Token{}, errOneToken()
}

// RevokeToken implements [Tokens].
func (localSecret) RevokeToken(context.Context, string) error { return errOneToken() }

// admitting gives a browser that comes with the secret in its address a session, and sends it on without the secret.
func (s *Server) admitting(front http.Handler) http.Handler {
	if s.cfg.Secret == "" {
		return front
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secret := r.URL.Query().Get("token")
		if r.Method != http.MethodGet || r.URL.Path != "/" || secret == "" {
			front.ServeHTTP(w, r)
			return
		}
		if _, err := s.cfg.Tokens.Token(r.Context(), secret); err == nil {
			c := cookie(identityOf(r.Context()), prefix, secret, int(sessionAge.Seconds()))
			http.SetCookie(w, &c)
		}
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}
