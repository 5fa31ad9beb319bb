package gpuworker

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"ddiff/internal/s3test"
	"ddiff/restore/item"
	"ddiff/storage"
)

// lateS3 is a proxy that does not answer some requests to write a file, and sends them to the server when release is called.
type lateS3 struct {
	forward *httputil.ReverseProxy
	holds   func(r *http.Request) bool
	mu      sync.Mutex
	held    []*http.Request
}

func (l *lateS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.mu.Lock(); l.holds != nil && r.Method == http.MethodPut && l.holds(r) {
		defer l.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err == nil {
			held := r.Clone(context.WithoutCancel(r.Context()))
			held.Body = io.NopCloser(bytes.NewReader(body))
			l.held = append(l.held, held)
		}
		panic(http.ErrAbortHandler)
	}
	l.mu.Unlock()
	l.forward.ServeHTTP(w, r)
}

// hold sets the requests; nil: none.
func (l *lateS3) hold(holds func(r *http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = holds
}

// release sends the held requests, and returns the codes of the answers.
func (l *lateS3) release() (codes []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.held {
		answer := httptest.NewRecorder()
		l.forward.ServeHTTP(answer, r)
		codes = append(codes, answer.Code)
	}
	return codes
}

// TestAttackLateWrite: S3 executes the requests of a worker that has given up after another worker has written the result. Every file is that
// of the result.
func TestAttackLateWrite(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	config := server.Config(server.Bucket(t))
	target, err := url.Parse(config.Endpoint)
	must(t, err)
	late := &lateS3{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // part of the signature
	}}}
	proxy := httptest.NewServer(late)
	t.Cleanup(proxy.Close)
	config.Endpoint, config.Retry.Attempts = proxy.URL, 1
	s, err := storage.OpenS3(t.Context(), config)
	must(t, err)
	t.Cleanup(s.Close)
	write := func(version string, brighter float32) (*item.Result, error) {
		w, _ := workerOf(t, func(c *Config) { c.Version = version })
		tk := solved(t, brighter)
		tk.assigned.Store = s
		return engineRestorer{w.core}.write(t.Context(), tk)
	}
	// The first worker dies between its files. The second one sees the leftovers, and what it writes over them is on its way.
	late.hold(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+item.FileRestored) })
	if _, err := write("1.0.0", 0); err == nil {
		t.Fatal("a worker that gets no answer has a result")
	}
	late.hold(func(r *http.Request) bool { return r.Header.Get("If-None-Match") == "" })
	if _, err := write("2.0.0", 0.5); err == nil {
		t.Fatal("a second worker that gets no answer has a result")
	}
	late.hold(nil)
	res, err := write("3.0.0", 0)
	must(t, err)
	wantFiles(t, s, res)
	if codes := late.release(); len(codes) < 2 || codes[0] != http.StatusPreconditionFailed {
		t.Errorf("the late requests are answered with %v", codes)
	}
	wantFiles(t, s, res)
}
