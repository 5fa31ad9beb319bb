package testbed

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// wrongStore is a proxy of an S3 server that changes answers to reads.
type wrongStore struct {
	mu     sync.Mutex
	stale  bool // every address has the answer of its last request before, or of its first one since
	halved bool // successful answers end after half of the bytes, at which their length says that they end
	old    map[string]*httptest.ResponseRecorder
}

// serve starts the proxy until the end of the test, and returns its address.
func (x *wrongStore) serve(t *testing.T, server string) string {
	t.Helper()
	x.old = map[string]*httptest.ResponseRecorder{}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: server})
		r.Out.Host = r.In.Host // part of the signature
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	front := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // of the test alone
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			forward.ServeHTTP(w, r)
			return
		}
		key := r.Method + r.URL.String() + r.Header.Get("Range")
		x.mu.Lock()
		answer, halved := x.old[key], x.halved
		if !x.stale {
			answer = nil
		}
		x.mu.Unlock()
		if answer == nil {
			answer = httptest.NewRecorder()
			forward.ServeHTTP(answer, r)
			x.mu.Lock()
			x.old[key] = answer
			x.mu.Unlock()
		}
		body := answer.Body.Bytes()
		if halved && answer.Code == http.StatusOK && r.Method == http.MethodGet {
			body = body[:len(body)/2]
		}
		for name, values := range answer.Header() {
			if w.Header()[name] = values; name == "Content-Length" && r.Method == http.MethodGet {
				w.Header().Del(name)
			}
		}
		w.WriteHeader(answer.Code)
		w.Write(bytes.Clone(body)) //nolint:errcheck // the client has gone
	})}
	t.Cleanup(func() { _ = front.Close() })
	go front.Serve(listener) //nolint:errcheck // ends with Close
	return listener.Addr().String()
}

func (x *wrongStore) set(stale, halved bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stale, x.halved = stale, halved
}

var noneFailed = regexp.MustCompile(`(?m)^failed +0$`)

// TestAttackStore runs campaigns through an S3 server that answers with one byte a second, with older versions, or with halved
// bodies, while the leader is killed; and pulls the results all the time. Every item is done once, and every result verifies.
func TestAttackStore(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{})
	x := &wrongStore{}
	toxic, address, err := startToxic(t.Context(), "slow", x.serve(t, c.S3.Address))
	must(t, err)
	t.Cleanup(func() { toxic.Stop() })
	images := map[string][]byte{}
	for _, name := range []string{"astronaut", "chelsea", "coffee", "retina", "rocket"} {
		images[name+".png"] = read(t, photograph(name))
	}
	must(t, c.PutImages(t.Context(), images))
	c.Through(address)
	coordinator(t, c)
	coordinator(t, c)
	worker(t, c, "--batch", "1", "--source-cache", "-1")
	for _, attack := range []struct {
		name       string
		begin, end func()
		during     time.Duration
	}{
		{"halved", func() { x.set(false, true) }, func() { x.set(false, false) }, 15 * time.Second},
		{"stale", func() { x.set(true, false) }, func() { x.set(false, false) }, 15 * time.Second},
		{"slow", func() { must(t, addToxic(toxic, "slicer", "downstream", `{"average_size": 1, "delay": 1000000}`)) },
			func() { must(t, toxic.Toxics.RemoveToxic(t.Context(), "slicer-downstream")) }, 45 * time.Second},
	} {
		file := filepath.Join(t.TempDir(), attack.name+".yaml")
		write(t, file, []byte("name: "+attack.name+"\ndataset: {path: \""+c.Images()+"\", size: 64}\ntasks: [hdr, super_resolution]\nsteps: 8\n"))
		id := submit(t, c, file, "--canary", "0")
		copied := filepath.Join(t.TempDir(), "copy")
		from := strings.Replace(c.S3.Store(Bucket, ""), "?", "/"+id+"?", 1)
		pull := func() {
			t.Helper()
			if e := end(t, with(c.Command(t.Context(), "pull", from, copied), c.S3.Admin.Environment()...)); e.code != 0 {
				t.Errorf("%s: pull: %v", attack.name, e)
			}
		}
		settled(t, c, id, 3)
		pull()
		attack.begin()
		begin := time.Now()
		leader, err := c.Leader(t.Context())
		must(t, err)
		sleep(t.Context(), attack.during/3)
		leader.Kill()
		for time.Since(begin) < attack.during {
			pull()
			if e := ask(t, c, "status", id); e.code != 0 || !noneFailed.MatchString(e.stdout) {
				t.Errorf("%s: status: %v", attack.name, e)
			}
			sleep(t.Context(), time.Second)
		}
		attack.end()
		must(t, leader.Start())
		t.Logf("%s: %d items have a result after the attack", attack.name, c.Settled(id))
		wantFinished(t, c, id, 10)
		pull()
		for _, dir := range []string{c.Results(id), copied} {
			if e := ask(t, c, "verify", dir); e.code != 0 || !strings.Contains(e.stdout, "checked=10 ok=10 wrong=0 unfinished=0") {
				t.Errorf("%s: verify: %v", attack.name, e)
			}
		}
	}
}

// TestAttackDeletedResults deletes half of the results of a campaign while it runs, in a real bucket. Their items are restored again
// before it finishes.
func TestAttackDeletedResults(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{})
	coordinator(t, c)
	simulated(t, c, 100*time.Millisecond)
	const items, half = 60, 15
	id := submit(t, c, listFile(t, "deleted", items), "--canary", "0")
	settled(t, c, id, 2*half)
	found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*"))
	must(t, err)
	for _, dir := range found[:half] {
		must(t, os.RemoveAll(dir))
	}
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}
