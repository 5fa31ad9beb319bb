package queue_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/lifecycle/lifecycletest"
	"ddiff/queue"
)

// listening returns the local addresses on which this process accepts TCP connections.
func listening(t *testing.T) []string {
	t.Helper()
	sockets := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok && err == nil {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var addresses []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		t.Cleanup(func() { must(t, f.Close()) })
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// Fields 1, 3 and 9 are the local address, the state (0A: listening), the inode.
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == "0A" && sockets[fields[9]] {
				addresses = append(addresses, fields[1])
			}
		}
	}
	return addresses
}

func TestEmbeddedOpensNoPort(t *testing.T) {
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "c", "1", nil))
	if got := listening(t); len(got) > 0 {
		t.Fatalf("the process listens on %v, want no port", got)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close() // the test is over
	if got := listening(t); len(got) != 1 {
		t.Fatalf("with a listener of the test: %v, want one address", got)
	}
}

func TestEmbeddedLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func() lifecycletest.Service { return queue.NewEmbedded(queue.EmbeddedConfig{Dir: t.TempDir()}) })
}

func TestCallsAfterStopReturnErrClosed(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	server.Stop()
	mustBe(t, publish(t.Context(), q, "c", "1", nil), queue.ErrClosed)
	_, err := q.Lease(t.Context(), 1, patience)
	mustBe(t, err, queue.ErrClosed)
	_, err = server.Connect()
	mustBe(t, err, queue.ErrClosed)
	for _, err := range q.Results(t.Context(), 0) {
		mustBe(t, err, queue.ErrClosed)
	}
}

func TestEmbeddedStartErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	blocked := t.TempDir()
	must(t, os.WriteFile(filepath.Join(blocked, "jetstream"), nil, 0o644))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		dir  string
		want string
	}{
		{"no directory", t.Context(), "", "Dir is empty"},
		{"a file", t.Context(), file, "not a directory"},
		{"a file in the server's place", t.Context(), blocked, "JetStream"},
		{"cancelled", cancelled, t.TempDir(), "context canceled"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, err := queue.StartEmbedded(c.ctx, queue.EmbeddedConfig{Dir: c.dir})
			if err == nil {
				server.Stop()
				t.Fatal("the server started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %q does not contain %q", err, c.want)
			}
		})
	}
}
