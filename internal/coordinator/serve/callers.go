package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
)

func (s *Server) addCallers() {
	add(s, api.Viewer, http.MethodGet, "/me", "Get the owner and the role of the caller", func(ctx context.Context, _ *none) (api.Me, error) {
		return s.me(identityOf(ctx).token), nil
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

// identity is who sends a request.
type identity struct {
	token  api.Token
	secret string
	// door and session are those of a browser.
	door, session string
	// refused is why the request has no token; nil if it has one.
	refused *api.Error
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

func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, door := atDoor(r)
		i, problem := s.identify(r, door)
		if problem != nil {
			writeProblem(w, problem)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, i)))
	})
}

func (s *Server) identify(r *http.Request, door string) (identity, *api.Error) {
	i := identity{door: door, secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"}
	i.address, _, _ = net.SplitHostPort(r.RemoteAddr)
	if s.cfg.Secret != "" && !Local(r.Host) {
		return i, api.NewError(api.ErrDenied, fmt.Sprintf("the server is for this machine alone, and the request is for the host %.100q; give the coordinator --require-tokens", r.Host))
	}
	secret, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c, err := r.Cookie(sessionCookie); err == nil && !isBearer && door != "" && s.sameOrigin(r) {
		i.session = c.Value
	}
	if i.secret = secret; !isBearer {
		i.secret = ""
	}
	if i.secret == "" && i.session == "" || !strings.HasPrefix(r.URL.Path, prefix) {
		i.refused = api.NewError(api.ErrNoToken, "the request needs an access token; an administrator creates one: ddiff token create")
		if s.cfg.Secret != "" {
			i.refused = api.NewError(api.ErrNoToken, "the request needs the token of the address that the command printed")
		}
		return i, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.AnswerLimit)
	defer cancel()
	if err := s.authenticate(ctx, &i); err != nil {
		if i.refused = board.Problem(err); i.refused.Status != http.StatusUnauthorized && i.refused.Status != http.StatusForbidden {
			return i, i.refused
		}
	}
	return i, nil
}

// authenticate finds the token of a caller by its secret, or by the session that has it.
func (s *Server) authenticate(ctx context.Context, i *identity) (err error) {
	if i.session != "" {
		if i.secret, err = s.secretOf(ctx, i.door, i.session); err != nil {
			return err
		}
	}
	i.token, err = s.cfg.Tokens.Token(ctx, i.secret)
	return err
}

// sameOrigin reports whether a browser sends a request for this page or for nobody's: a session serves no page of another port or host.
func (s *Server) sameOrigin(r *http.Request) bool {
	unsafe := *r
	unsafe.Method = http.MethodPost
	return s.origin.Check(&unsafe) == nil
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
