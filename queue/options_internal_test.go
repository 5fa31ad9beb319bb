package queue

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestConnectionOptions: a lost connection is restored without a limit of attempts, also after refused credentials, and nothing is sent from
// a buffer after the deadline of its caller. A dead connection is noticed after two pings.
func TestConnectionOptions(t *testing.T) {
	t.Parallel()
	list, err := ConnectConfig{URL: "nats://a", Name: "me", Role: "worker", Logger: slog.New(slog.DiscardHandler)}.options()
	must(t, err)
	o := nats.GetDefaultOptions()
	for _, option := range list {
		must(t, option(&o))
	}
	if o.MaxReconnect != -1 || o.ReconnectBufSize != -1 || !o.IgnoreAuthErrorAbort || !o.AllowReconnect {
		t.Errorf("%d reconnects, a buffer of %d bytes, ends at refused credentials %v", o.MaxReconnect, o.ReconnectBufSize, !o.IgnoreAuthErrorAbort)
	}
	if o.PingInterval != 10*time.Second || o.MaxPingsOut != 2 || o.Timeout != 5*time.Second || o.ReconnectWait != 500*time.Millisecond {
		t.Errorf("pings every %v up to %d, %v for a dial, %v between two", o.PingInterval, o.MaxPingsOut, o.Timeout, o.ReconnectWait)
	}
	if o.Name != "me" || o.InboxPrefix != "_INBOX_worker" {
		t.Errorf("name %q, inboxes %q", o.Name, o.InboxPrefix)
	}
	// The same holds for the embedded server.
	server, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	defer server.Stop()
	nc, err := server.Connect()
	must(t, err)
	if nc.Opts.MaxReconnect != -1 || nc.Opts.ReconnectWait != 100*time.Millisecond {
		t.Errorf("embedded: %d reconnects, %v between two", nc.Opts.MaxReconnect, nc.Opts.ReconnectWait)
	}
}

// TestRedacted: a displayed address has no user, password or token.
func TestRedacted(t *testing.T) {
	t.Parallel()
	for urls, want := range map[string]string{
		"tls://user:hunter2@a:1, token@b": "tls://a:1,nats://b", "nats://user:hunter2/x@b:4222": "(not an address)",
	} {
		if got := redacted(urls); got != want {
			t.Errorf("redacted: %s, want %s", got, want)
		}
	}
}
