package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
)

// sessionAge is how long a browser keeps the cookie of a session.
const sessionAge = 12 * time.Hour

// session is an answer that sets or removes the cookie of a browser.
type session struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   api.Me
}

// addCallers adds the routes of tokens and sessions.
func (s *Server) addCallers() {
	add(s, api.Viewer, http.MethodGet, "/me", "Get the owner and the role of the caller", func(ctx context.Context, _ *none) (api.Me, error) {
		return s.me(identityOf(ctx).token), nil
	})
	login := s.operation(anyone, http.MethodPost, "/session", "Give the token of a browser, which gets it back as a cookie", func(op *huma.Operation) {
		op.Errors = append(op.Errors, http.StatusUnauthorized)
	})
	huma.Register(s.api, login, func(ctx context.Context, in *struct {
		Body struct {
			Token string `json:"token" minLength:"1" maxLength:"200"`
		}
	},
	) (*session, error) {
		if s.cfg.Tokens == nil {
			return nil, Problem(api.NewError(api.ErrRefused, "this server needs no token"))
		}
		t, err := s.cfg.Tokens.Token(ctx, in.Body.Token)
		if err != nil {
			return nil, s.failed(ctx, login, err)
		}
		return &session{cookie(identityOf(ctx), in.Body.Token, int(sessionAge.Seconds())), s.me(t)}, nil
	})
	add(s, anyone, http.MethodGet, "/session", "Get how a browser signs in, and its owner and role if it has", func(ctx context.Context, _ *none) (api.Me, error) {
		return s.me(identityOf(ctx).token), nil
	})
	logout := s.operation(anyone, http.MethodDelete, "/session", "Remove the cookie of a browser")
	huma.Register(s.api, logout, func(ctx context.Context, _ *none) (*session, error) {
		return &session{cookie(identityOf(ctx), "", -1), s.me(api.Token{})}, nil
	})

	tokens := func() (Tokens, error) {
		if s.cfg.Tokens == nil {
			return nil, api.NewError(api.ErrRefused, "this server needs no tokens; give the coordinator --require-tokens")
		}
		return s.cfg.Tokens, nil
	}
	refused := func(op *huma.Operation) { op.Errors = append(op.Errors, http.StatusConflict) }
	add(s, api.Admin, http.MethodGet, "/tokens", "List the tokens without their secrets", func(ctx context.Context, _ *none) (api.Tokens, error) {
		t, err := tokens()
		if err != nil {
			return api.Tokens{}, err
		}
		return t.Tokens(ctx)
	}, refused)
	add(s, api.Admin, http.MethodPost, "/tokens", "Create a token; the answer has its secret, which is not stored", func(ctx context.Context, in *struct {
		Body struct {
			Owner string   `json:"owner" minLength:"1" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$"`
			Role  api.Role `json:"role" enum:"viewer,submitter,admin"`
		}
	},
	) (api.Token, error) {
		t, err := tokens()
		if err != nil {
			return api.Token{}, err
		}
		return t.CreateToken(ctx, in.Body.Owner, in.Body.Role)
	}, status(http.StatusCreated))
	add(s, api.Admin, http.MethodDelete, "/tokens/{token}", "Revoke a token", func(ctx context.Context, in *struct {
		Token string `path:"token" pattern:"^[0-9a-f]{12}$" doc:"Id of the token"`
	},
	) (api.Tokens, error) {
		t, err := tokens()
		if err == nil {
			err = t.RevokeToken(ctx, in.Token)
		}
		if err != nil {
			return api.Tokens{}, err
		}
		return t.Tokens(ctx)
	})
}

func (s *Server) me(t api.Token) api.Me {
	return api.Me{Owner: t.Owner, Role: t.Role, Open: s.cfg.Tokens == nil, Login: s.cfg.Login != nil, Backend: s.cfg.Kind}
}

func cookie(i identity, secret string, age int) http.Cookie {
	return http.Cookie{
		Name: sessionCookie, Value: secret, Path: prefix, MaxAge: age, HttpOnly: true, Secure: i.secure, SameSite: http.SameSiteStrictMode,
	}
}
