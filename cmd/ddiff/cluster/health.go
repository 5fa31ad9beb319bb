package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"ddiff/internal/cli"
	"ddiff/internal/lifecycle"
)

// probes are the checks of a process, as a supervisor asks for them. They may be used and changed concurrently.
type probes struct {
	mu sync.Mutex
	// started, ready and live return the reason why the process is not, or nil.
	started, ready, live func() error
}

// newProbes returns the probes of a process that begins with an action, as in "opening the device".
func newProbes(action string) *probes {
	begins := func() error { return errors.New(action) }
	return &probes{started: begins, ready: begins, live: func() error { return nil }}
}

// change replaces probes. It leaves those that are nil.
func (p *probes) change(started, ready, live func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []struct {
		probe *func() error
		by    func() error
	}{{&p.started, started}, {&p.ready, ready}, {&p.live, live}} {
		if c.by != nil {
			*c.probe = c.by
		}
	}
}

// passed is a probe that succeeds.
func passed() error { return nil }

// answer returns the handler of one probe: 200, or 503 with the reason.
func (p *probes) answer(probe func(p *probes) func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		check := probe(p)
		p.mu.Unlock()
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// handle adds the paths of the probes to mux.
func (p *probes) handle(mux *http.ServeMux) {
	mux.HandleFunc("GET /startupz", p.answer(func(p *probes) func() error { return p.started }))
	mux.HandleFunc("GET /readyz", p.answer(func(p *probes) func() error { return p.ready }))
	mux.HandleFunc("GET /livez", p.answer(func(p *probes) func() error { return p.live }))
}

// endpoint serves HTTP at an address, until it is stopped. It is a service of package lifecycle.
type endpoint struct {
	flag, address string
	mux           *http.ServeMux
	service       lifecycle.Service
}

// Start listens and serves. The error is that of cli.Usage when the address cannot be used.
func (e *endpoint) Start(ctx context.Context) error { return e.service.Start(ctx, e.run) }

// Stop closes the server.
func (e *endpoint) Stop() { e.service.Stop() }

func (e *endpoint) run(ctx context.Context, ready func()) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.address)
	if err != nil {
		return cli.Usage(fmt.Errorf("%s: %w", e.flag, err))
	}
	server := &http.Server{Handler: e.mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve reports the end
	ready()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}
