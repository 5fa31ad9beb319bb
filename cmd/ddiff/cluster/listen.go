package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/lifecycle"
	"ddiff/internal/regular"
	"ddiff/telemetry"
)

// listenFlags are the addresses at which a process of a cluster answers supervisors and Prometheus.
type listenFlags struct{ health, metrics string }

func (l *listenFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.health, "health-listen", "", "serve GET /startupz, /readyz and /livez at `HOST:PORT` (default: off)")
	f.StringVar(&l.metrics, "metrics-listen", "", "serve GET /metrics for Prometheus at `HOST:PORT`, and the paths of --health-listen (default: off)")
}

// serve serves the probes and the metrics until stop is called. The error is that of cli.Usage when an address cannot be used.
func (l listenFlags) serve(ctx context.Context, p *probes, tel *telemetry.Telemetry) (stop func(), err error) {
	muxes, flags := map[string]*http.ServeMux{}, map[string]string{} // by address
	at := func(flag, address string) *http.ServeMux {
		if muxes[address] == nil {
			muxes[address], flags[address] = http.NewServeMux(), flag
		}
		return muxes[address]
	}
	if l.health != "" {
		p.handle(at("--health-listen", l.health))
	}
	if l.metrics != "" {
		mux := at("--metrics-listen", l.metrics)
		mux.Handle("GET /metrics", tel.Metrics())
		if l.metrics != l.health {
			p.handle(mux)
		}
	}
	var services []*lifecycle.Service
	stop = func() {
		for _, s := range services {
			s.Stop()
		}
	}
	for address, mux := range muxes {
		s, err := listen(ctx, flags[address], address, func(ctx context.Context, l net.Listener) error {
			s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
			defer context.AfterFunc(ctx, func() { _ = s.Close() })() // Serve reports the end
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return ctx.Err()
		})
		if err != nil {
			stop()
			return nil, err
		}
		services = append(services, s)
	}
	return stop, nil
}

// listen serves at an address until the service is stopped. The error is that of cli.Usage when the address cannot be used.
func listen(ctx context.Context, flag, address string, serve func(ctx context.Context, l net.Listener) error) (*lifecycle.Service, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	return lifecycle.Go(context.WithoutCancel(ctx), func(ctx context.Context) error { return serve(ctx, l) }), nil
}

// apiFlags are the flags of the HTTP API of a coordinator.
type apiFlags struct {
	address       string
	tls           serve.TLS
	requireTokens bool
	adminToken    string // file
	publicURL     string
	oidc          oidcFlags

	byDefault bool // address is no one's wish
}

const (
	envAdminToken = "DDIFF_ADMIN_TOKEN_FILE"
	listenOff     = "off"
)

func (a *apiFlags) add(f *pflag.FlagSet) {
	f.StringVar(&a.address, "listen", server.DefaultListen, "serve the page and the HTTP API at `HOST:PORT`; :PORT is that of 127.0.0.1; "+listenOff+": nowhere")
	f.StringVar(&a.tls.Cert, "tls-cert", "", "PEM `file` with the certificate of --listen")
	f.StringVar(&a.tls.Key, "tls-key", "", "PEM `file` with the key of --tls-cert")
	f.BoolVar(&a.requireTokens, "require-tokens", false, "require access tokens of ddiff token on 127.0.0.1 too, where otherwise only this user has access; other addresses always require them")
	f.StringVar(&a.adminToken, "admin-token", "", "`file` with an access token of an administrator, to create others; replace the file to replace it ($"+envAdminToken+")")
	f.StringVar(&a.publicURL, "public-url", "", "`address` of the server for browsers, as in https://host, to which --oidc-issuer sends them back (default: localhost only)")
	a.oidc.add(f)
}

func (a *apiFlags) check() error {
	if err := a.oidc.check(); err != nil {
		return cli.Usage(err)
	}
	a.adminToken = cmp.Or(a.adminToken, os.Getenv(envAdminToken))
	a.requireTokens = a.requireTokens || a.oidc.config != nil || a.adminToken != ""
	if u, err := url.Parse(a.publicURL); a.publicURL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "") {
		return cli.Usage(fmt.Errorf("--public-url: %q is no address of a server; give one as in https://host", a.publicURL))
	}
	a.publicURL = strings.TrimRight(a.publicURL, "/")
	if a.publicURL != "" && a.oidc.config == nil {
		return cli.Usage(errors.New("--public-url is for --oidc-issuer; give it"))
	}
	if a.address == listenOff {
		if a.tls != (serve.TLS{}) || a.requireTokens {
			return cli.Usage(errors.New("--tls-cert, --tls-key, --require-tokens, --admin-token and --oidc-issuer are for --listen, which is off; give it HOST:PORT"))
		}
		return nil
	}
	host, port, err := net.SplitHostPort(a.address)
	if err != nil {
		return cli.Usage(fmt.Errorf("--listen: %w; give HOST:PORT", err))
	}
	if host == "" || host == "localhost" {
		host = api.Loopback
		a.address = net.JoinHostPort(host, port)
	}
	if (a.tls.Cert == "") != (a.tls.Key == "") {
		return cli.Usage(errors.New("--tls-cert and --tls-key belong together; give both or none"))
	}
	if a.tls.Cert != "" {
		if _, err := regular.KeyPair(a.tls.Cert, a.tls.Key); err != nil {
			return cli.Usage(fmt.Errorf("--tls-cert and --tls-key: %w", err))
		}
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		a.requireTokens = true
	}
	return nil
}

// admit gives a server its tokens: those of a cluster, of the administrator, and of the users of an issuer. An error: nobody could use it.
func (a *apiFlags) admit(ctx context.Context, c *cluster.Cluster, s *serve.Config) error {
	if !a.requireTokens {
		return nil
	}
	s.Tokens = c
	if a.adminToken != "" {
		var err error
		if s.Tokens, err = serve.WithAdmin(a.adminToken, c); err != nil {
			return cli.Usage(fmt.Errorf("--admin-token: %w", err))
		}
	} else if a.oidc.config == nil {
		found, err := c.HasTokens(ctx)
		if err != nil {
			return err
		}
		if !found {
			return cli.Usage(fmt.Errorf("--listen: %s needs an access token, and there is none; give --admin-token FILE or --oidc-issuer", a.address))
		}
	}
	return a.oidc.accept(s)
}

// probes are the checks of a process, as a supervisor asks for them. They may be used and changed concurrently.
type probes struct{ started, ready, live probe }

// newProbes returns the probes of a process that begins with an action, as in "opening the device".
func newProbes(action string) *probes {
	p := &probes{}
	begins := func() error { return errors.New(action) }
	p.started.set(begins)
	p.ready.set(begins)
	p.live.set(passed)
	return p
}

func (p *probes) handle(mux *http.ServeMux) {
	mux.Handle("GET /startupz", &p.started)
	mux.Handle("GET /readyz", &p.ready)
	mux.Handle("GET /livez", &p.live)
}

// probe answers 200, or 503 with the reason that its check returns.
type probe struct{ check atomic.Pointer[func() error] }

func (p *probe) set(check func() error) { p.check.Store(&check) }

func (p *probe) test() error { return (*p.check.Load())() }

// ServeHTTP implements http.Handler.
func (p *probe) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if err := p.test(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func passed() error { return nil }
