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

// The passwords that docs/security/nats-accounts.conf takes from the environment.
var passwords = map[string]string{
	"coordinator": "coordinator-secret", "worker": "worker-secret", "command": "command-secret",
}

func setPasswords() {
	for role, password := range passwords {
		os.Setenv("DDIFF_"+strings.ToUpper(role)+"_PASSWORD", password) //nolint:errcheck // a test without them fails
	}
}

// serve starts a server that listens on this machine, until the test ends.
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
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { stopServer(s) })
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// jetStream are the options of a server with streams.
func jetStream(t *testing.T) *server.Options {
	t.Helper()
	return &server.Options{JetStream: true, StoreDir: t.TempDir()}
}

// serveRoles starts a server with the accounts that are shipped.
func serveRoles(t *testing.T) *server.Server {
	t.Helper()
	accounts, err := filepath.Abs("../docs/security/nats-accounts.conf")
	must(t, err)
	dir := t.TempDir()
	accounts, err = filepath.Rel(dir, accounts) // as the server reads it
	must(t, err)
	conf := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(conf, fmt.Appendf(nil, "include %q\n", accounts), 0o600))
	o, err := server.ProcessConfigFile(conf)
	must(t, err)
	o.JetStream, o.StoreDir = true, t.TempDir()
	return serve(t, o)
}

// connect connects in a role.
func connect(t *testing.T, s *server.Server, role string) *nats.Conn {
	t.Helper()
	url := strings.Replace(s.ClientURL(), "://", "://"+role+":"+passwords[role]+"@", 1)
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: url, Name: t.Name(), Role: role})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// freePort is a port on which nobody listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// quick is a connection to a server without accounts.
func quick(t *testing.T, s *server.Server) *nats.Conn {
	t.Helper()
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: s.ClientURL(), Name: t.Name(), Wait: patience})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// restart stops a server and starts it again, with the same port and files.
func restart(t *testing.T, s *server.Server, o *server.Options, away time.Duration) *server.Server {
	t.Helper()
	o.Port = s.Addr().(*net.TCPAddr).Port
	stopServer(s)
	time.Sleep(away) // the server is to be missed
	return serve(t, o)
}
