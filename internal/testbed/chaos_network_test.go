package testbed

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// refusal is an S3 error that a proxy returns instead of the server's answer.
type refusal struct {
	status        int
	code, message string
	// user limits the refusal to the requests of one S3 user; empty: all users.
	user string
}

// The errors of a store that is overloaded, and of keys that have expired, were deleted or lost their permissions.
var (
	unavailable = refusal{status: http.StatusServiceUnavailable, code: "SlowDown", message: "Please reduce your request rate."}
	badKeys     = []refusal{
		{status: http.StatusBadRequest, code: "ExpiredToken", message: "The provided token has expired."},
		{status: http.StatusForbidden, code: "InvalidAccessKeyId", message: "The access key does not exist in our records."},
		{status: http.StatusForbidden, code: "AccessDenied", message: "Access Denied."},
	}
)

// of limits the refusal to one user.
func (r refusal) of(user string) refusal {
	r.user = user
	return r
}

func (r refusal) String() string { return fmt.Sprintf("%d %s", r.status, r.code) }

// write writes the error in the form of S3.
func (r refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, r.code, r.message)
}

// counter closes reached at the n-th GET request of a path with a prefix.
type counter struct {
	prefix  string
	n       int
	reached chan struct{}
	// held: the n-th and later requests wait for the end of this channel. Nil: they do not wait.
	held chan struct{}
}

// network is the path to the S3 server: toxiproxy, which hangs and resets connections, followed by
// an HTTP proxy that returns errors.
type network struct {
	// address of S3 for programs.
	address string

	toxic *toxiproxy.Proxy
	front *http.Server

	mu       sync.Mutex
	refusals []*refusal
	counters []*counter
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
		if wait := n.count(r); wait != nil {
			select {
			case <-wait:
			case <-r.Context().Done():
			}
		}
		if refused := n.refused(r); refused != nil {
			refused.write(w)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	go n.front.Serve(listener) //nolint:errcheck // ends with close
	n.toxic, n.address, err = startToxic(ctx, "s3", listener.Addr().String())
	return n, err
}

// startToxic starts toxiproxy in front of a server and returns its address.
func startToxic(ctx context.Context, name, server string) (*toxiproxy.Proxy, string, error) {
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	// Without metrics.
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), name, address, server)
	if err := proxy.Start(); err != nil {
		return nil, "", fmt.Errorf("start toxiproxy: %w", err)
	}
	return proxy, address, nil
}

// close stops both proxies.
func (n *network) close() {
	n.toxic.Stop()
	n.front.Close() //nolint:errcheck // no data is in flight
}

// refused returns the refusal that applies to a request, or nil.
func (n *network) refused(r *http.Request) *refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.refusals {
		if x.user == "" || strings.Contains(r.Header.Get("Authorization"), "Credential="+x.user+"/") {
			return x
		}
	}
	return nil
}

// refuse returns errors until the caller calls end.
func (n *network) refuse(x refusal) (end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusals = append(n.refusals, &x)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.refusals = slices.DeleteFunc(n.refusals, func(each *refusal) bool { return each == &x })
	}
}

// count counts a request, and returns the channel that it has to wait for, or nil.
func (n *network) count(r *http.Request) <-chan struct{} {
	if r.Method != http.MethodGet {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.counters {
		if !strings.HasPrefix(r.URL.Path, c.prefix) {
			continue
		}
		if c.n--; c.n == 0 {
			close(c.reached)
		}
		if c.n <= 0 && c.held != nil {
			return c.held
		}
	}
	return nil
}

// after returns a channel that closes at the n-th GET request of an object of a bucket with a prefix.
func (n *network) after(bucket, prefix string, number int) <-chan struct{} {
	return n.add(&counter{prefix: "/" + bucket + "/" + prefix, n: number, reached: make(chan struct{})})
}

// hold makes the n-th and later GET requests of objects with a prefix wait until the caller calls release.
func (n *network) hold(bucket, prefix string, number int) (reached <-chan struct{}, release func()) {
	c := &counter{prefix: "/" + bucket + "/" + prefix, n: number, reached: make(chan struct{}), held: make(chan struct{})}
	return n.add(c), sync.OnceFunc(func() { close(c.held) })
}

func (n *network) add(c *counter) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters = append(n.counters, c)
	return c.reached
}

// hang keeps connections open without data for a while.
func (n *network) hang(ctx context.Context, d time.Duration) error {
	return poison(ctx, n.toxic, d, "timeout", `{"timeout": 0}`)
}

// reset resets every connection with traffic for a while.
func (n *network) reset(ctx context.Context, d time.Duration) error {
	return poison(ctx, n.toxic, d, "reset_peer", `{"timeout": 0}`)
}

// poison adds a toxic to a proxy for a while.
func poison(ctx context.Context, proxy *toxiproxy.Proxy, d time.Duration, toxic, attributes string) error {
	if err := addToxic(proxy, toxic, "upstream", attributes); err != nil {
		return err
	}
	sleep(ctx, d)
	if err := proxy.Toxics.RemoveToxic(context.WithoutCancel(ctx), toxic+"-upstream"); err != nil {
		return fmt.Errorf("remove toxic %s: %w", toxic, err)
	}
	return nil
}

// addToxic adds a toxic to one direction of a proxy.
func addToxic(proxy *toxiproxy.Proxy, toxic, stream, attributes string) error {
	text := fmt.Sprintf(`{"name": "%s-%s", "type": %q, "stream": %q, "attributes": %s}`, toxic, stream, toxic, stream, attributes)
	if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		return fmt.Errorf("add toxic %s: %w", toxic, err)
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
