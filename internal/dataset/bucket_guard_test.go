package dataset_test

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestBucketGuard: an endpoint that an address names obeys the rules for web servers. No byte reaches a refused server, so
// no key or session token does.
func TestBucketGuard(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "token")
	t.Setenv("http_proxy", "")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var connections atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, c := range map[string]struct {
		endpoint string
		change   func(*dataset.Config)
		refused  string // empty: a connection is made
	}{
		"loopback":              {"https://127.0.0.1:" + port, nil, "not a public address"},
		"loopback by name":      {"https://localhost:" + port, nil, "not a public address"},
		"without a scheme":      {"127.0.0.1:" + port, nil, "not a public address"},
		"http":                  {"http://127.0.0.1:" + port, func(c *dataset.Config) { c.Networks = loopback }, "not encrypted"},
		"metadata of a cloud":   {"http://169.254.169.254", func(c *dataset.Config) { c.AllowHTTP = true }, "not a public address"},
		"another endpoint":      {"http://127.0.0.1:" + port, func(c *dataset.Config) { c.Endpoints = []string{"https://s3.example"} }, "not allowed"},
		"allowed network":       {"http://localhost:" + port, func(c *dataset.Config) { c.Networks, c.AllowHTTP = loopback, true }, ""},
		"allowed endpoint":      {"http://127.0.0.1:" + port, func(c *dataset.Config) { c.Endpoints = []string{"http://127.0.0.1:" + port} }, ""},
		"endpoint of the store": {"http://127.0.0.1:" + port, func(c *dataset.Config) { c.OwnEndpoints = []string{"http://127.0.0.1:" + port} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			connections.Store(0)
			s := sources(t, func(cfg *dataset.Config) {
				cfg.Attempts = 1
				if c.change != nil {
					c.change(cfg)
				}
			})
			address := "s3://bucket/a.png?endpoint=" + url.QueryEscape(c.endpoint)
			_, err := s.Get(t.Context(), address)
			if c.refused == "" {
				if connections.Load() == 0 || errors.Is(err, dataset.ErrRefused) {
					t.Errorf("%d connections, %v", connections.Load(), err)
				}
				return
			}
			if !errors.Is(err, dataset.ErrRefused) || !strings.Contains(err.Error(), c.refused) || connections.Load() > 0 {
				t.Errorf("Get: %v with %d connections", err, connections.Load())
			}
			_, _, err = rows(t, s, manifest.Dataset{Path: "s3://bucket/list.csv?endpoint=" + url.QueryEscape(c.endpoint)})
			if !errors.Is(err, dataset.ErrRefused) || connections.Load() > 0 {
				t.Errorf("Rows: %v with %d connections", err, connections.Load())
			}
		})
	}
}
