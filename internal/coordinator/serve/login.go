package serve

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
)

// Login signs browsers in with the authorization code flow of an identity provider. Errors are those of package api.
type Login interface {
	// Begin returns the address of the provider, which sends the browser to callback. The browser keeps memo until then.
	Begin(callback string) (address, memo string, err error)
	// Finish returns a secret that Tokens knows.
	Finish(ctx context.Context, callback, memo, state, code string) (secret string, err error)
}

const (
	// loginCookie has the memo of a sign-in, for at most loginAge.
	loginCookie = "ddiff_login"
	loginAge    = 10 * time.Minute
	loginPath   = prefix + "/session"
)

// redirect sends a browser to another address and changes its cookies, or tells its user why not.
type redirect struct {
	Status   int
	Location string        `header:"Location"`
	Cookies  []http.Cookie `header:"Set-Cookie"`
	Type     string        `header:"Content-Type"`
	Body     []byte
}

// refusal is a page with the reason.
func (s *Server) refusal(ctx context.Context, op huma.Operation, err error) *redirect {
	p := board.Problem(s.failed(ctx, op, err))
	return &redirect{
		Status: p.Status, Type: "text/html; charset=utf-8",
		Body: fmt.Appendf(nil, "<!doctype html><title>ddiff</title><p>%s</p><p><a href=\"/\">Sign in</a></p>\n", html.EscapeString(p.Detail)),
	}
}

// inLogin has the host of a request.
type inLogin struct{ host string }

// Resolve implements huma.Resolver.
func (in *inLogin) Resolve(ctx huma.Context) []error {
	in.host = ctx.Host()
	return nil
}

// callback returns the address to which the provider sends a browser. It follows from the configuration: a request may name any host. Only
// this machine needs none.
func (s *Server) callback(ctx context.Context, in inLogin) (string, error) {
	at := s.cfg.PublicURL
	if at == "" {
		if !Local(in.host) {
			return "", api.NewError(api.ErrDenied, "the server does not know its address; an administrator gives the coordinator --public-url https://HOST")
		}
		at = "http://" + in.host
		if identityOf(ctx).secure {
			at = "https://" + in.host
		}
	}
	return at + loginPath + "/callback", nil
}

func (s *Server) addLogin() {
	if s.cfg.Login == nil {
		return
	}
	found := func(op *huma.Operation) {
		op.DefaultStatus, op.RejectUnknownQueryParameters = http.StatusFound, false // providers add parameters
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden)
	}
	begin := s.operation(anyone, http.MethodGet, "/session/login", "Send a browser to the identity provider", found)
	huma.Register(s.api, begin, func(ctx context.Context, in *inLogin) (*redirect, error) {
		callback, err := s.callback(ctx, *in)
		address, memo := "", ""
		if err == nil {
			address, memo, err = s.cfg.Login.Begin(callback)
		}
		if err != nil {
			return s.refusal(ctx, begin, err), nil
		}
		return &redirect{Status: http.StatusFound, Location: address, Cookies: []http.Cookie{memory(ctx, memo, int(loginAge.Seconds()))}}, nil
	})
	end := s.operation(anyone, http.MethodGet, "/session/callback", "Complete a sign-in by the identity provider", found)
	huma.Register(s.api, end, func(ctx context.Context, in *struct {
		inLogin
		Memo  http.Cookie `cookie:"ddiff_login"`
		State string      `query:"state" maxLength:"100"`
		Code  string      `query:"code" maxLength:"4000"`
		Error string      `query:"error" maxLength:"200" doc:"Reason of the provider"`
	},
	) (*redirect, error) {
		if in.Error != "" || in.Code == "" {
			return s.refusal(ctx, end, api.NewError(api.ErrNoToken, "the identity provider refuses the sign-in: "+cmp.Or(in.Error, "it gives no code"))), nil
		}
		callback, err := s.callback(ctx, in.inLogin)
		if err != nil {
			return s.refusal(ctx, end, err), nil
		}
		secret, err := s.cfg.Login.Finish(ctx, callback, in.Memo.Value, in.State, in.Code)
		handOff := ""
		if err == nil {
			handOff, err = s.handOff(ctx, secret)
		}
		if err != nil {
			return s.refusal(ctx, end, err), nil
		}
		// The page is at the root, and knows its door, which no cookie tells: other ports of the host may write it.
		return &redirect{Status: http.StatusFound, Location: "/#token=" + handOff, Cookies: []http.Cookie{memory(ctx, "", -1)}}, nil
	})
}

// memory is the cookie of a sign-in. Browsers send it with the navigation from the provider.
func memory(ctx context.Context, memo string, age int) http.Cookie {
	return http.Cookie{
		Name: loginCookie, Value: memo, Path: loginPath, MaxAge: age, HttpOnly: true, Secure: identityOf(ctx).secure, SameSite: http.SameSiteLaxMode,
	}
}
