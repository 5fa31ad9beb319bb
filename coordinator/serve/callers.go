package serve

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
	"ddiff/manifest"
)

// sessionAge is how long a browser keeps the cookie of a session.
const sessionAge = 12 * time.Hour

// session is an answer that sets or removes the cookie of a browser.
type session struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   api.Me
}

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
		t, err := s.cfg.Tokens.Token(ctx, in.Body.Token)
		if err != nil {
			return nil, s.failed(ctx, login, err)
		}
		return &session{cookie(identityOf(ctx), "", in.Body.Token, int(sessionAge.Seconds())), s.me(t)}, nil
	})
	add(s, anyone, http.MethodGet, "/session", "Get how a browser signs in, and its owner and role if it has", func(ctx context.Context, _ *none) (api.Me, error) {
		return s.me(identityOf(ctx).token), nil
	})
	logout := s.operation(anyone, http.MethodDelete, "/session", "Remove the cookie of a browser")
	huma.Register(s.api, logout, func(ctx context.Context, _ *none) (*session, error) {
		return &session{cookie(identityOf(ctx), "", "", -1), s.me(api.Token{})}, nil
	})

	refused := func(op *huma.Operation) { op.Errors = append(op.Errors, http.StatusConflict) }
	add(s, api.Admin, http.MethodGet, "/tokens", "List the tokens without their secrets", func(ctx context.Context, _ *none) (api.Tokens, error) {
		return s.cfg.Tokens.Tokens(ctx)
	}, refused)
	add(s, api.Admin, http.MethodPost, "/tokens", "Create a token; the answer has its secret, which is not stored", func(ctx context.Context, in *struct {
		Body struct {
			Owner string   `json:"owner" minLength:"1" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$"`
			Role  api.Role `json:"role" enum:"viewer,submitter,admin"`
			Days  int      `json:"days,omitempty" minimum:"0" maximum:"3650" doc:"Days until the token ends; without it a year"`
		}
	},
	) (api.Token, error) {
		t, err := s.cfg.Tokens.CreateToken(ctx, in.Body.Owner, in.Body.Role, in.Body.Days)
		if err == nil {
			note(ctx, "token", t.ID, "token_owner", t.Owner, "token_role", t.Role)
		}
		return t, err
	}, status(http.StatusCreated))
	add(s, api.Admin, http.MethodDelete, "/tokens/{token}", "Revoke a token", func(ctx context.Context, in *struct {
		Token string `path:"token" pattern:"^[0-9a-f]{12}$" doc:"Id of the token"`
	},
	) (api.Tokens, error) {
		if err := s.cfg.Tokens.RevokeToken(ctx, in.Token); err != nil {
			return api.Tokens{}, err
		}
		return s.cfg.Tokens.Tokens(ctx)
	})
}

func (s *Server) me(t api.Token) api.Me {
	return api.Me{Owner: t.Owner, Role: t.Role, Open: s.cfg.Secret != "", Login: s.cfg.Login != nil, Backend: s.cfg.Kind}
}

// cookie is the cookie of a session. Browsers send it below a path; an empty one is that above the request, as the browser knows it: a proxy may
// serve the page below a path of its own.
func cookie(i identity, path, secret string, age int) http.Cookie {
	return http.Cookie{
		Name: i.cookie, Value: secret, Path: path, MaxAge: age, HttpOnly: true, Secure: i.secure, SameSite: http.SameSiteStrictMode,
	}
}

// sessionCookie has the secret of the token of a browser.
const sessionCookie = "ddiff_session"

// identity is who sends a request.
type identity struct {
	token  api.Token
	secret string
	// refused is why the request has no token; nil if it has one.
	refused *api.Error
	// cookie is the name of the cookie with the secret of a browser.
	cookie string
	// address is that of the client or of its proxy.
	address string
	// secure: the client, or a proxy in its name, came with TLS.
	secure bool
}

type identityKey struct{}

func identityOf(ctx context.Context) identity {
	i, _ := ctx.Value(identityKey{}).(identity)
	return i
}

func (i identity) may(role api.Role) *api.Error {
	if i.refused != nil {
		return i.refused
	}
	if slices.Index(api.Roles(), i.token.Role) < slices.Index(api.Roles(), role) {
		return api.NewError(api.ErrDenied, "the token of "+i.token.Owner+" has the role "+string(i.token.Role)+"; this needs "+string(role))
	}
	return nil
}

func (i identity) mayChange(c *manifest.Campaign) error {
	if i.token.Role == api.Admin || c.Owner == i.token.Owner {
		return nil
	}
	return api.NewError(api.ErrDenied, "campaign "+c.ID+" belongs to another owner; this needs the role "+string(api.Admin))
}

func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, problem := s.identify(r)
		if problem != nil {
			writeProblem(w, problem)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, i)))
	})
}

func (s *Server) identify(r *http.Request) (identity, *api.Error) {
	i := identity{secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", cookie: sessionCookie}
	i.address, _, _ = net.SplitHostPort(r.RemoteAddr)
	if s.cfg.Secret != "" { // browsers share cookies between the ports of a host
		_, port, _ := net.SplitHostPort(r.Host)
		i.cookie += "_" + port
	}
	secret, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		if c, err := r.Cookie(i.cookie); err == nil {
			secret = c.Value
		}
	}
	i.secret = secret
	if secret == "" || !strings.HasPrefix(r.URL.Path, prefix) {
		i.refused = api.NewError(api.ErrNoToken, "the request needs an access token; an administrator creates one: ddiff token create")
		if s.cfg.Secret != "" {
			i.refused = api.NewError(api.ErrNoToken, "the request needs the token of the address that the command printed")
		}
		return i, nil
	}
	var err error
	if i.token, err = s.cfg.Tokens.Token(r.Context(), secret); err != nil {
		if i.refused = Problem(err); i.refused.Status != http.StatusUnauthorized && i.refused.Status != http.StatusForbidden {
			return i, i.refused
		}
		return i, nil
	}
	return i, nil
}

// Local reports whether a host, with or without a port, is this machine.
func Local(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
