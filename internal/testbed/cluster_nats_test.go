package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// NATS are the servers of a NATS cluster with JetStream.
type NATS struct {
	// Servers are the processes. Their files survive a kill.
	Servers []*Process
	// Authority signs the servers' certificates; nil without TLS.
	Authority *Authority

	client   Pair     // certificate of clients; empty: they need none
	clients  []string // addresses for clients, host:port
	monitors []string // addresses of the monitoring endpoints, http://host:port
	users    *Users   // nil: no users, no permissions
	rewrite  []func(maxFile int64) error
}

// NATSOptions configures the servers. The zero value is one server without TLS and users.
type NATSOptions struct {
	// Servers is the number of servers. Default: 1.
	Servers int
	// Secure enables TLS and the users and permissions of docs/security; three servers then use
	// the complete configuration from there.
	Secure bool
	// Mutual makes the servers require certificates of clients, with Secure and one server.
	Mutual bool
	// Host is the address of the servers. Default: 127.0.0.1.
	Host string
	// Until is the expiry of the servers' certificates. Default: in a day.
	Until time.Time
	// SyncAlways writes every message to disk before its acknowledgement.
	SyncAlways bool
	// MaxFile limits the disk space of a server's streams, in bytes. Default: 1 GiB.
	MaxFile int64
}

// StartNATS starts servers with their files in dir and waits until they are ready.
func StartNATS(ctx context.Context, dir string, o NATSOptions) (*NATS, error) {
	path, err := NATSBinary(ctx)
	if err != nil {
		return nil, err
	}
	if o.Servers == 0 {
		o.Servers = 1
	}
	if o.MaxFile == 0 {
		o.MaxFile = 1 << 30
	}
	if o.Until.IsZero() {
		o.Until = time.Now().Add(24 * time.Hour)
	}
	n := &NATS{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	var routes []string
	for range o.Servers {
		var addresses [3]string
		for i := range addresses {
			if addresses[i], err = freeAddress(ctx, o.Host); err != nil {
				return nil, err
			}
		}
		n.clients = append(n.clients, addresses[0])
		routes = append(routes, addresses[1])
		n.monitors = append(n.monitors, "http://"+addresses[2])
	}
	var pair Pair
	if o.Secure {
		if n.Authority, err = NewAuthority(dir); err != nil {
			return nil, err
		}
		if pair, err = n.Authority.Issue("nats-server", o.Until); err != nil {
			return nil, err
		}
		if n.users, err = newUsers(ctx, dir); err != nil {
			return nil, err
		}
	}
	if o.Mutual {
		if n.client, err = n.Authority.Issue("nats-client", o.Until); err != nil {
			return nil, err
		}
	}
	for i := range o.Servers {
		p, err := n.describe(dir, i, path, routes, pair, o)
		if err != nil {
			return nil, err
		}
		n.Servers = append(n.Servers, p)
		if err := p.Start(); err != nil {
			n.Kill()
			return nil, err
		}
	}
	for i := range n.Servers {
		if err := n.Ready(ctx, i); err != nil {
			n.Kill()
			return nil, err
		}
	}
	return n, nil
}

// describe prepares the process of a server. Three servers with users run with the unchanged files
// of docs/security, plus a monitoring port for this process.
func (n *NATS) describe(dir string, i int, path string, routes []string, pair Pair, o NATSOptions) (*Process, error) {
	name := fmt.Sprintf("nats-%d", i+1)
	if o.Secure && o.Servers == 3 {
		env := append(n.users.environment(),
			"DDIFF_NATS_NAME="+name, "DDIFF_NATS_LISTEN="+n.clients[i], "DDIFF_NATS_CLUSTER="+routes[i],
			"DDIFF_NATS_STORE="+filepath.Join(dir, name),
			"DDIFF_NATS_CERT="+pair.Cert, "DDIFF_NATS_KEY="+pair.Key, "DDIFF_NATS_CA="+n.Authority.File)
		for j, route := range routes {
			env = append(env, fmt.Sprintf("DDIFF_NATS_ROUTE_%d=nats-route://%s", j+1, route))
		}
		_, port, err := net.SplitHostPort(strings.TrimPrefix(n.monitors[i], "http://"))
		if err != nil {
			return nil, err
		}
		return NewProcess(dir, name, env, path, "--config", filepath.Join(dir, serverFile), "--http_port", port), nil
	}
	file := filepath.Join(dir, name+".conf")
	n.rewrite = append(n.rewrite, func(maxFile int64) error {
		o.MaxFile = maxFile
		return os.WriteFile(file, []byte(n.config(name, dir, i, routes, pair, o)), 0o600)
	})
	if err := n.rewrite[i](o.MaxFile); err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	return NewProcess(dir, name, n.users.environment(), path, "--config", file), nil
}

// Resize restarts a server with another limit for its streams, in bytes. It does not apply to
// servers with the configuration of docs/security.
func (n *NATS) Resize(ctx context.Context, i int, maxFile int64) error {
	if err := n.rewrite[i](maxFile); err != nil {
		return fmt.Errorf("resize %s: %w", n.Servers[i].Name, err)
	}
	n.Servers[i].Kill()
	if err := n.Servers[i].Start(); err != nil {
		return err
	}
	return n.Ready(ctx, i)
}

// config returns the configuration file of a server without the configuration of docs/security.
func (n *NATS) config(name, dir string, i int, routes []string, pair Pair, o NATSOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %q\nlisten: %q\nhttp: %q\n", name, n.clients[i], strings.TrimPrefix(n.monitors[i], "http://"))
	fmt.Fprintf(&b, "jetstream {\n  store_dir: %q\n  max_file_store: %d\n", filepath.Join(dir, name), o.MaxFile)
	if o.SyncAlways {
		b.WriteString("  sync_interval: always\n")
	}
	b.WriteString("}\n")
	if o.Secure {
		fmt.Fprintf(&b, "tls {\n  cert_file: %q\n  key_file: %q\n  ca_file: %q\n  verify: %t\n  timeout: 5\n}\n",
			pair.Cert, pair.Key, n.Authority.File, o.Mutual)
		fmt.Fprintf(&b, "include %q\n", accountsFile)
	}
	if o.Servers > 1 {
		fmt.Fprintf(&b, "cluster {\n  name: ddiff\n  listen: %q\n  routes: [\n", routes[i])
		for _, route := range routes {
			fmt.Fprintf(&b, "    \"nats-route://%s\"\n", route)
		}
		b.WriteString("  ]\n}\n")
	}
	return b.String()
}

// Kill kills all servers.
func (n *NATS) Kill() {
	for _, p := range n.Servers {
		p.Kill()
	}
}

// Ready waits until a server has the state of its streams and knows a leader.
func (n *NATS) Ready(ctx context.Context, i int) error {
	return n.await(ctx, i, func() error { return n.ask(ctx, i, "/healthz", nil) })
}

// await polls a server until it returns no error, for at most 30 seconds.
func (n *NATS) await(ctx context.Context, i int, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	p := n.Servers[i]
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Exited():
			return fmt.Errorf("%s has ended with code %d:\n%s", p.Name, p.Code(), tail(p.Log()))
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w\n%s", p.Name, ctx.Err(), err, tail(p.Log()))
		}
	}
}

// ask reads from a monitoring endpoint.
func (n *NATS) ask(ctx context.Context, i int, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.monitors[i]+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() // it was read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// StreamInfo is the state of a stream.
type StreamInfo struct {
	Name     string
	Leader   string
	Messages uint64
	Bytes    uint64
	// Last is the sequence number of the last message.
	Last uint64
}

// Streams returns all streams, from the first server that answers.
func (n *NATS) Streams(ctx context.Context) ([]StreamInfo, error) {
	var answer struct {
		Accounts []struct {
			Streams []struct {
				Name    string `json:"name"`
				Cluster struct {
					Leader string `json:"leader"`
				} `json:"cluster"`
				State struct {
					Messages uint64 `json:"messages"`
					Bytes    uint64 `json:"bytes"`
					Last     uint64 `json:"last_seq"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	var errs []error
	for i, p := range n.Servers {
		if !p.Running() {
			continue
		}
		if err := n.ask(ctx, i, "/jsz?accounts=1&streams=1", &answer); err != nil {
			errs = append(errs, err)
			continue
		}
		var all []StreamInfo
		for _, account := range answer.Accounts {
			for _, s := range account.Streams {
				all = append(all, StreamInfo{s.Name, s.Cluster.Leader, s.State.Messages, s.State.Bytes, s.State.Last})
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("ask nats-server for its streams: %w", errors.Join(errs...))
}

// StreamLeader returns the index of the server that leads a stream.
func (n *NATS) StreamLeader(ctx context.Context, stream string) (int, error) {
	all, err := n.Streams(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.Name != stream {
			continue
		}
		if i := slices.IndexFunc(n.Servers, func(p *Process) bool { return p.Name == s.Leader }); i >= 0 {
			return i, nil
		}
		return 0, fmt.Errorf("stream %s has no leader now", stream)
	}
	return 0, fmt.Errorf("no stream %s", stream)
}
