package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/coordinator/serve"
	"ddiff/internal/cli"
	"ddiff/internal/lifecycle"
)

// apiFlags are the flags of the HTTP API of a coordinator.
type apiFlags struct {
	address       string
	tls           serve.TLS
	requireTokens bool
	oidc          oidcFlags
}

func (a *apiFlags) add(f *pflag.FlagSet) {
	f.StringVar(&a.address, "listen", "", "serve the page and the HTTP API at `HOST:PORT`; :PORT is that of localhost (default: off)")
	f.StringVar(&a.tls.Cert, "tls-cert", "", "PEM `file` with the certificate of --listen")
	f.StringVar(&a.tls.Key, "tls-key", "", "PEM `file` with the key of --tls-cert")
	f.BoolVar(&a.requireTokens, "require-tokens", false, "require access tokens on localhost too; other addresses always require them")
	a.oidc.add(f)
}

// check completes and checks the flags.
func (a *apiFlags) check() error {
	if err := a.oidc.check(); err != nil {
		return cli.Usage(err)
	}
	a.requireTokens = a.requireTokens || a.oidc.config != nil
	if a.address == "" {
		if a.tls != (serve.TLS{}) || a.requireTokens {
			return cli.Usage(errors.New("--tls-cert, --tls-key, --require-tokens and --oidc-issuer are for --listen; give it"))
		}
		return nil
	}
	if strings.HasPrefix(a.address, ":") {
		a.address = "localhost" + a.address
	}
	host, _, err := net.SplitHostPort(a.address)
	if err != nil {
		return cli.Usage(fmt.Errorf("--listen: %w; give HOST:PORT", err))
	}
	if (a.tls.Cert == "") != (a.tls.Key == "") {
		return cli.Usage(errors.New("--tls-cert and --tls-key belong together; give both or none"))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		a.requireTokens = true
	}
	return nil
}

// listening is a server at an address, until it is stopped.
type listening struct{ lifecycle.Service }

// start serves at the address of the flags. The error is that of cli.Usage when the address cannot be used.
func (a apiFlags) start(ctx context.Context, s *serve.Server) (*listening, error) {
	l := &listening{}
	err := l.Start(context.WithoutCancel(ctx), func(ctx context.Context, ready func()) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", a.address)
		if err != nil {
			return cli.Usage(fmt.Errorf("--listen: %w", err))
		}
		ready()
		return s.Serve(ctx, listener, a.tls)
	})
	return l, err
}
