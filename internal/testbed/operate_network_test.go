package testbed

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOperateProxy runs a cluster whose programs reach the store and the collector through an HTTP proxy only: just the proxy knows the
// names of the servers.
func TestOperateProxy(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{})
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may have gone
	}))
	t.Cleanup(collector.Close)
	var mu sync.Mutex
	requests := map[string]int{}
	servers := map[string]string{"s3.ddiff.test:9000": c.S3.Address, "collector.ddiff.test:4318": collector.Listener.Addr().String()}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: servers[r.In.Host]})
		r.Out.Host, r.Out.URL.Path = r.In.Host, r.In.URL.Path // parts of the signature
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests[r.Host]++
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c.Through("s3.ddiff.test:9000")
	env := []string{"HTTP_PROXY=" + proxy.URL, "NO_PROXY=127.0.0.1", "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.ddiff.test:4318", "OTEL_BSP_SCHEDULE_DELAY=200"}
	took := func(host string) int {
		mu.Lock()
		defer mu.Unlock()
		return requests[host]
	}
	takeSteps(t, []step{
		{"campaign", func(t *testing.T) {
			begin(t, c.NewCoordinator("--nats-wait", "30s"), "coordinator is ready", env...)
			begin(t, c.NewWorker("--nats-wait", "30s", "--simulate", "20ms"), "worker is ready", env...)
			id := submit(t, c, listFile(t, "proxy", 20), "--canary", "0")
			wantFinished(t, c, id, 20)
		}},
		{"store", func(t *testing.T) {
			if n := took("s3.ddiff.test:9000"); n < 20 {
				t.Errorf("%d requests of the store through the proxy", n)
			}
		}},
		{"collector", func(t *testing.T) {
			if n := took("collector.ddiff.test:4318"); n == 0 {
				t.Error("no request of the collector through the proxy")
			}
		}},
		{"dead proxy", func(t *testing.T) {
			e := end(t, with(c.Command(t.Context(), "verify", c.S3.Store(Bucket, "s3.ddiff.test:9000")), "HTTP_PROXY=http://127.0.0.1:1"))
			if e.code != 6 || !strings.Contains(e.stderr, "proxyconnect") {
				t.Errorf("want exit code 6 and a line about the proxy: %v", e)
			}
		}},
	})
}

// TestOperateIPv6 runs a cluster without an IPv4 address.
func TestOperateIPv6(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{SecureS3: true, NATS: NATSOptions{Secure: true, Host: "::1"}})
	address := strings.Replace(listening(t), "127.0.0.1", "[::1]", 1)
	takeSteps(t, []step{
		{"campaign", func(t *testing.T) {
			begin(t, c.NewCoordinator("--nats-wait", "30s", "--health-listen", address, "--metrics-listen", address), "coordinator is ready")
			worker(t, c, "--simulate", "20ms")
			id := submit(t, c, listFile(t, "ipv6", 20), "--canary", "0")
			wantFinished(t, c, id, 20)
		}},
		{"health", func(t *testing.T) { wantReady(t, address, http.StatusOK) }},
		{"metrics", func(t *testing.T) {
			if status, text := probe(t, address, "/metrics"); status != http.StatusOK || !strings.Contains(text, "ddiff_leader 1") {
				t.Errorf("%d %s", status, text)
			}
		}},
	})
}

// TestOperateHungStore: while the store does not answer, /readyz says so and answers itself, also to the health check of compose.yaml, and
// /livez succeeds. Then the campaign goes on.
func TestOperateHungStore(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	c := startCluster(t, Options{})
	toxic, through, err := startToxic(t.Context(), "store", c.S3.Address)
	must(t, err)
	t.Cleanup(func() { toxic.Stop() })
	c.Through(through)
	lead, solve := listening(t), listening(t)
	begin(t, c.NewCoordinator("--nats-wait", "30s", "--health-listen", lead), "coordinator is ready")
	begin(t, c.NewWorker("--nats-wait", "30s", "--simulate", "200ms", "--health-listen", solve), "worker is ready")
	compose := composeHealth(t, lead)
	var id string
	takeSteps(t, []step{
		{"ready", func(t *testing.T) {
			wantReady(t, lead, http.StatusOK)
			wantReady(t, solve, http.StatusOK)
			wantCode(t, end(t, compose()), 0)
			id = submit(t, c, listFile(t, "hung", 50), "--canary", "0")
			settled(t, c, id, 5)
		}},
		{"hung", func(t *testing.T) {
			must(t, addToxic(toxic, "timeout", "upstream", `{"timeout": 0}`))
			wantReady(t, lead, http.StatusServiceUnavailable)
			for _, address := range []string{lead, solve} {
				begin := time.Now()
				if status, text := probe(t, address, "/livez"); status != http.StatusOK || time.Since(begin) > 5*time.Second {
					t.Errorf("/livez answers %d after %v: %s", status, time.Since(begin), text)
				}
			}
		}},
		{"compose", func(t *testing.T) { wantCode(t, end(t, compose()), 1) }},
		{"answers again", func(t *testing.T) {
			must(t, toxic.Toxics.RemoveToxic(t.Context(), "timeout-upstream"))
			wantReady(t, lead, http.StatusOK)
			wantCode(t, end(t, compose()), 0)
			wantFinished(t, c, id, 50)
		}},
	})
}

// hole accepts connections and never answers.
func hole(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return "http://" + l.Addr().String()
}

// TestOperateCollector: a collector that is dead, answers nothing, is slow, or refuses changes neither results nor the time in which a process
// ends.
func TestOperateCollector(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	answers := func(status int, after time.Duration) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sleep(r.Context(), after)
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	var steps []step
	for _, x := range []struct{ name, endpoint string }{
		{"dead", "http://127.0.0.1:1"}, {"hung", hole(t)}, {"slow", answers(http.StatusOK, 3*time.Second)},
		{"overloaded", answers(http.StatusServiceUnavailable, 0)}, {"refusing", answers(http.StatusUnauthorized, 0)},
	} {
		steps = append(steps, step{x.name, func(t *testing.T) {
			c := startCluster(t, Options{Directory: true})
			env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + x.endpoint, "OTEL_METRIC_EXPORT_INTERVAL=1000"}
			begin(t, c.NewCoordinator("--nats-wait", "30s"), "coordinator is ready", env...)
			begin(t, c.NewWorker("--nats-wait", "30s", "--simulate", "5ms", "--batch", "8"), "worker is ready", env...)
			id := submit(t, c, listFile(t, x.name, 1000), "--canary", "0")
			wantFinished(t, c, id, 1000)
			for _, p := range append(c.Workers, c.Coordinators...) {
				begin := time.Now()
				code, err := p.Stop(30 * time.Second)
				must(t, err)
				if took := time.Since(begin); code != 0 || took > 15*time.Second {
					t.Errorf("%s ended with code %d after %v", p.Name, code, took)
				}
				if n := strings.Count(p.Log(), "telemetry"); n > 20 {
					t.Errorf("%s wrote %d lines about telemetry", p.Name, n)
				}
			}
		}})
	}
	takeSteps(t, steps)
}
