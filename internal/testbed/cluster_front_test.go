package testbed

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// argument returns the value of a flag; empty without it.
func argument(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// startFront writes the administrator's token, and serves the HTTP API at one address until ctx ends, as a service of Kubernetes does: a connection goes to
// the next coordinator that accepts it.
func (c *Cluster) startFront(ctx context.Context) error {
	c.admin = "admin-" + rand.Text()
	if err := os.WriteFile(c.path("admin"), []byte(c.admin+"\n"), 0o600); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.front = l.Addr().String()
	context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Accept
	var turn atomic.Int64
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.forward(ctx, in, int(turn.Add(1)))
		}
	}()
	return nil
}

// forward connects a client with a coordinator; without one it ends the connection.
func (c *Cluster) forward(ctx context.Context, in net.Conn, turn int) {
	defer in.Close() // the client notices it
	c.mu.Lock()
	all := slices.Clone(c.served)
	c.mu.Unlock()
	for i := range all {
		out, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", all[(i+turn)%len(all)])
		if err != nil {
			continue
		}
		go func() {
			defer in.Close() // either end closes
			io.Copy(in, out) //nolint:errcheck // either end closes
		}()
		io.Copy(out, in) //nolint:errcheck // either end closes
		out.Close()      // the coordinator notices it
		return
	}
}
