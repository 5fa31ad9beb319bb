package serve

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"ddiff/api"
	"ddiff/manifest"
)

// sessionCookie has the secret of the token of a browser.
const sessionCookie = "ddiff_session"

// identity is who sends a request.
type identity struct {
	token  api.Token
	secret string
	// who shares a limit: the id of the token, or the address of a caller without one.
	who string
	// refused is why the request has no token; nil if it has one.
	refused *api.Error
	// secure: the client, or a proxy in its name, came with TLS.
	secure bool
}

type identityKey struct{}

// identityOf returns the identity in the context of a request.
func identityOf(ctx context.Context) identity {
	i, _ := ctx.Value(identityKey{}).(identity)
	return i
}

// may returns an error unless the identity has a role.
func (i identity) may(role api.Role) *api.Error {
	if i.refused != nil {
		return i.refused
	}
	if slices.Index(api.Roles(), i.token.Role) < slices.Index(api.Roles(), role) {
		return api.NewError(api.ErrDenied, "the token of "+i.token.Owner+" has the role "+string(i.token.Role)+"; this needs "+string(role))
	}
	return nil
}

// mayChange returns an error unless the identity may change a campaign.
func (i identity) mayChange(c *manifest.Campaign) error {
	if i.token.Role == api.Admin || c.Owner == i.token.Owner {
		return nil
	}
	return api.NewError(api.ErrDenied, "campaign "+c.ID+" belongs to another owner; this needs the role "+string(api.Admin))
}

// identified adds the identity to the context of a request.
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
	i := identity{secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", who: addressOf(r)}
	if s.cfg.Tokens == nil {
		// Without tokens the browser of this machine has all rights: no other name may lead here, and no proxy.
		if !Local(r.Host) || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
			return i, api.NewError(api.ErrDenied, "without tokens the server answers localhost only, and no proxy; require tokens")
		}
		i.token.Role = api.Admin
		return i, nil
	}
	secret, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		if c, err := r.Cookie(sessionCookie); err == nil {
			secret = c.Value
		}
	}
	i.secret = secret
	if secret == "" || !strings.HasPrefix(r.URL.Path, prefix) {
		i.refused = api.NewError(api.ErrNoToken, "the request needs an access token; an administrator creates one: ddiff token create")
		return i, nil
	}
	var err error
	if i.token, err = s.cfg.Tokens.Token(r.Context(), secret); err != nil {
		if i.refused = Problem(err); i.refused.Status != http.StatusUnauthorized && i.refused.Status != http.StatusForbidden {
			return i, i.refused
		}
		return i, nil
	}
	i.who = i.token.ID
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
