package testbed

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/manifest"
)

// cutter is the way of a verb to NATS and S3. It kills the verb at one of its writes.
type cutter struct {
	nats, s3 string // addresses

	mu     sync.Mutex
	verb   *exec.Cmd
	left   int  // writes before the one that kills
	passes bool // the write that kills takes effect
	killed bool
}

// newCutter starts both proxies until the end of the test.
func newCutter(t *testing.T, c *Cluster) *cutter {
	t.Helper()
	x := &cutter{}
	front, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	x.s3 = front.Addr().String()
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: c.S3.Address})
		r.Out.Host = r.In.Host // part of the signature
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // of the test alone
		isWrite := r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.Contains(r.URL.Path, "probe")
		x.pass(isWrite, func() { forward.ServeHTTP(w, r) })
	})}
	t.Cleanup(func() { _ = server.Close() })
	go server.Serve(front) //nolint:errcheck // ends with Close

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	x.nats = "nats://" + listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go x.forward(client, strings.TrimPrefix(c.NATS.URL(""), "nats://"))
		}
	}()
	return x
}

// forward copies the frames of a connection of the client protocol.
func (x *cutter) forward(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(client, server) //nolint:errcheck // ends with the connection
	in := bufio.NewReader(client)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fields, payload := strings.Fields(line), 0
		isMessage := len(fields) > 2 && (fields[0] == "PUB" || fields[0] == "HPUB")
		if isMessage {
			if payload, err = strconv.Atoi(fields[len(fields)-1]); err != nil {
				return
			}
			payload += 2
		}
		frame := make([]byte, payload)
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		isWrite := isMessage && (!strings.HasPrefix(fields[1], "$JS.API.") ||
			strings.Contains(fields[1], ".PURGE.") || strings.Contains(fields[1], ".DELETE."))
		x.pass(isWrite, func() { server.Write(append([]byte(line), frame...)) }) //nolint:errcheck // the next read fails
	}
}

// pass performs a request of the verb, unless the verb is killed before.
func (x *cutter) pass(isWrite bool, act func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if isWrite {
		x.left--
	}
	if cut := isWrite && x.left == 0; !x.killed && (!cut || x.passes) {
		act()
	}
	if isWrite && x.left == 0 {
		x.killed = true
		x.verb.Process.Kill() //nolint:errcheck // it runs: it waits for the answer
	}
}

// run runs a verb that is killed at its n-th write, before or after the write takes effect, and then the same verb to its end.
// It reports whether the verb has so many writes.
func (x *cutter) run(t *testing.T, c *Cluster, n int, after bool, args ...string) (killed bool) {
	t.Helper()
	x.mu.Lock()
	x.left, x.passes, x.killed = n, after, false
	x.verb = with(c.Command(t.Context(), args...), append(c.S3.Admin.Environment(), "DDIFF_NATS_URL="+x.nats)...)
	x.verb.Args = append(x.verb.Args, "--nats-wait", "1m")
	if args[0] == "delete" {
		x.verb.Args = append(x.verb.Args, "--store", c.S3.Store(Bucket, x.s3))
	}
	verb := x.verb
	var out strings.Builder
	verb.Stdout, verb.Stderr = &out, &out
	must(t, verb.Start())
	x.mu.Unlock()
	err := verb.Wait()
	x.mu.Lock()
	killed = x.killed
	x.mu.Unlock()
	if !killed {
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out.String())
		}
		return false
	}
	e := end(t, with(c.Command(t.Context(), args...), c.S3.Admin.Environment()...))
	if e.code != 0 && !strings.Contains(e.stderr, "unknown campaign") {
		t.Errorf("%v again, after it was killed at write %d (which took effect: %v): %v", args, n, after, e)
	}
	return true
}

// TestAttackVerbs kills cancel, resume, retry and delete at each of their writes to NATS and S3. The same verb completes the work,
// and no item is lost.
func TestAttackVerbs(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{})
	coordinator(t, c)
	simulated(t, c, 80*time.Millisecond)
	x := newCutter(t, c)
	writes := map[string]int{}
	for n := 1; ; n++ {
		deeper, rows := false, 30
		if n > 4 {
			n, rows = n+n/2, 6 // only delete has so many writes, and they are alike
		}
		for _, after := range []bool{false, true} {
			id := submit(t, c, disasterFile(t, fmt.Sprintf("verbs-%d-%v", n, after), rows), "--canary", "0")
			verb := func(args ...string) {
				t.Helper()
				if x.run(t, c, n, after, args...) {
					deeper, writes[args[0]] = true, n
				}
			}
			watch := func(want string) {
				t.Helper()
				if e := ask(t, c, "status", "--watch", id); e.stdout != want {
					t.Logf("%s\n%s", tail(c.Coordinators[0].Log()), tail(c.Workers[0].Log()))
					t.Fatalf("%s: want %q\n%v", id, want, e)
				}
			}
			finished := fmt.Sprintf("done=%d failed=1 dead=0 lost=0\n", rows)
			if settled(t, c, id, 1); n <= 4 {
				verb("cancel", id)
				if e := ask(t, c, "status", "--watch", id); e.code != 3 || !strings.Contains(e.stdout, "lost=0") {
					t.Errorf("after cancel: %v", e)
				}
				verb("resume", id)
				watch(finished)
				verb("retry", id, "--failed")
				watch(finished)
				found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*", manifest.FileResult))
				must(t, err)
				must(t, os.Remove(found[0]))
				verb("retry", id, "--missing")
			}
			watch(finished)
			if got := c.Settled(id); got != rows {
				t.Errorf("%s has %d results, want %d", id, got, rows)
			}
			verb("delete", id, "--results", "--yes")
			for _, dir := range []string{id, "campaigns/" + id} {
				if _, err := os.Stat(filepath.Join(c.S3.Root, Bucket, dir)); err == nil {
					t.Errorf("%s is left after write %d, %v", dir, n, after)
				}
			}
		}
		if !deeper {
			break
		}
	}
	t.Logf("writes: %v", writes)
	if writes["cancel"] < 1 || writes["resume"] < 1 || writes["retry"] < 1 || writes["delete"] < 8 {
		t.Errorf("verbs had fewer writes than known: %v", writes)
	}
}
