package testbed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// network is the path to the S3 server: toxiproxy, which hangs and resets connections, followed by
// an HTTP proxy that answers with 503.
type network struct {
	// address of S3 for programs.
	address string

	toxic   *toxiproxy.Proxy
	front   *http.Server
	refuses atomic.Bool
}

// newNetwork starts both proxies in front of a server.
func newNetwork(ctx context.Context, server string) (*network, error) {
	n := &network{}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: server})
			r.Out.Host = r.In.Host // part of the signature
		},
		Transport:    &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	n.front = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.refuses.Load() {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	go n.front.Serve(listener) //nolint:errcheck // ends with close
	if n.address, err = FreeAddress(ctx); err != nil {
		return nil, err
	}
	// Without metrics.
	n.toxic = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "s3", n.address, listener.Addr().String())
	if err := n.toxic.Start(); err != nil {
		return nil, fmt.Errorf("start toxiproxy: %w", err)
	}
	return n, nil
}

// close stops both proxies.
func (n *network) close() {
	n.toxic.Stop()
	n.front.Close() //nolint:errcheck // no data is in flight
}

// refuse answers every request with 503, for a while.
func (n *network) refuse(ctx context.Context, d time.Duration) {
	n.refuses.Store(true)
	defer n.refuses.Store(false)
	sleep(ctx, d)
}

// hang keeps connections open without data for a while.
func (n *network) hang(ctx context.Context, d time.Duration) error {
	return n.poison(ctx, d, "timeout", `{"timeout": 0}`)
}

// reset resets every connection with traffic for a while.
func (n *network) reset(ctx context.Context, d time.Duration) error {
	return n.poison(ctx, d, "reset_peer", `{"timeout": 0}`)
}

func (n *network) poison(ctx context.Context, d time.Duration, toxic, attributes string) error {
	text := fmt.Sprintf(`{"name": %q, "type": %q, "stream": "upstream", "attributes": %s}`, toxic, toxic, attributes)
	if _, err := n.toxic.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		return fmt.Errorf("add toxic %s: %w", toxic, err)
	}
	sleep(ctx, d)
	if err := n.toxic.Toxics.RemoveToxic(context.WithoutCancel(ctx), toxic); err != nil {
		return fmt.Errorf("remove toxic %s: %w", toxic, err)
	}
	return nil
}

// sleep waits until the duration has passed or ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
