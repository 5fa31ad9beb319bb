package queue_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"ddiff/queue"
)

// TestAccountsOfEarlierVersion restarts a server of an earlier version, which had one account, with an account for each role,
// while clients are connected and a worker has a lease.
func TestAccountsOfEarlierVersion(t *testing.T) {
	t.Parallel()
	accounts, err := os.ReadFile("../docs/security/nats-accounts.conf")
	must(t, err)
	permissions, _, found := strings.Cut(string(accounts), "accounts {")
	if !found {
		t.Fatal("the file has no accounts")
	}
	users := ""
	for role := range passwords {
		users += fmt.Sprintf("{ user: %s, password: $DDIFF_%s_PASSWORD, permissions: $%[2]s }\n", role, strings.ToUpper(role))
	}
	conf := filepath.Join(t.TempDir(), "nats.conf")
	write := func(accounts string) {
		t.Helper()
		listen := "listen: 127.0.0.1:-1\njetstream { store_dir: %q }\n"
		must(t, os.WriteFile(conf, fmt.Appendf(nil, listen+"%s", filepath.Join(filepath.Dir(conf), "store"), accounts), 0o600))
	}
	write(permissions + "accounts { DDIFF { jetstream: enabled, users: [\n" + users + "] } }\n")
	o, err := server.ProcessConfigFile(conf)
	must(t, err)
	s := serve(t, o)
	coordinator, worker, command := connect(t, s, "coordinator"), connect(t, s, "worker"), connect(t, s, "command")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	q := openOn(t, coordinator, queue.Config{Campaign: "1"})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	w := attach(t, worker, queue.Config{Campaign: "1"})
	first := lease(t, w)

	write(string(accounts))
	port := s.Addr().(*net.TCPAddr).Port
	stopServer(s)
	if o, err = server.ProcessConfigFile(conf); err != nil {
		t.Fatal(err)
	}
	o.Port = port
	serve(t, o)
	must(t, first.PublishResult(t.Context(), []byte("done")))
	must(t, first.Ack(t.Context()))
	must(t, lease(t, w).Bury(t.Context(), queue.Dead{ID: "2", Reason: "bad"}))
	board := openBoard(t, command)
	must(t, board.Put(t.Context(), "campaign.1", []byte("a campaign")))
	if got := results(t, q, 1); got["1"] != "done" {
		t.Fatalf("results %v", got)
	}
	must(t, worker.PublishRequest("$JS.API.INFO", "$KV.DDIFF_BOARD.campaign.1", nil))
	must(t, worker.FlushTimeout(patience))
	if data, _, err := board.Get(t.Context(), "campaign.1"); err != nil || string(data) != "a campaign" {
		t.Errorf("record %q, %v", data, err)
	}
}
