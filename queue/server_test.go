package queue_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ddiff/queue"
)

// passwords of docs/security/nats-accounts.conf, which the server reads from the environment.
var passwords = map[string]string{
	"coordinator": "coordinator-secret", "worker": "worker-secret", "command": "command-secret",
}

func setPasswords() {
	for role, password := range passwords {
		os.Setenv("DDIFF_"+strings.ToUpper(role)+"_PASSWORD", password) //nolint:errcheck // a test without them fails
	}
}

// serve starts a server on a local port that stops with the test.
func serve(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.NoSigs, o.NoLog = true, true
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	must(t, err)
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	t.Cleanup(func() { stopServer(s) })
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// jetStream returns the options of a server with JetStream.
func jetStream(t *testing.T) *server.Options {
	t.Helper()
	return &server.Options{JetStream: true, StoreDir: t.TempDir()}
}

// serveRoles starts a server with the documented accounts.
func serveRoles(t *testing.T) *server.Server {
	t.Helper()
	return serve(t, roleOptions(t))
}

// roleOptions returns the options of a server with the documented accounts.
func roleOptions(t *testing.T) *server.Options {
	t.Helper()
	accounts, err := filepath.Abs("../docs/security/nats-accounts.conf")
	must(t, err)
	dir := t.TempDir()
	accounts, err = filepath.Rel(dir, accounts) // relative to the configuration file
	must(t, err)
	conf := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(conf, fmt.Appendf(nil, "include %q\n", accounts), 0o600))
	o, err := server.ProcessConfigFile(conf)
	must(t, err)
	o.JetStream, o.StoreDir = true, t.TempDir()
	return o
}

// connect connects with a role.
func connect(t *testing.T, s *server.Server, role string) *nats.Conn {
	t.Helper()
	url := strings.Replace(s.ClientURL(), "://", "://"+role+":"+passwords[role]+"@", 1)
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: url, Name: t.Name(), Role: role})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// freePort returns an unused port.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// dial connects to a server without accounts.
func dial(t *testing.T, s *server.Server) *nats.Conn {
	t.Helper()
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: s.ClientURL(), Name: t.Name(), Wait: patience})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// restart stops a server for a time and starts it again with the same port and files.
func restart(t *testing.T, s *server.Server, o *server.Options, outage time.Duration) *server.Server {
	t.Helper()
	o.Port = s.Addr().(*net.TCPAddr).Port
	stopServer(s)
	time.Sleep(outage) // the outage itself is under test
	return serve(t, o)
}
