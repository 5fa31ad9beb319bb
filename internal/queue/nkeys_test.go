package queue_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"ddiff/internal/queue"
)

// TestAttackNKeys replaces the passwords of the documented accounts by NKeys, as their file says. Each role may do its part and no other; a stranger's
// key is refused.
func TestAttackNKeys(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile("../../docs/security/nats-accounts.conf")
	must(t, err)
	dir, seeds := t.TempDir(), map[string]string{}
	seed := func(name string) (public string) {
		pair, err := nkeys.CreateUser()
		must(t, err)
		text, err := pair.Seed()
		must(t, err)
		seeds[name] = filepath.Join(dir, name)
		must(t, os.WriteFile(seeds[name], text, 0o600))
		public, err = pair.PublicKey()
		must(t, err)
		return public
	}
	user := regexp.MustCompile(`user: (\w+), password: \$\w+`)
	conf = user.ReplaceAllFunc(conf, func(found []byte) []byte { return []byte("nkey: " + seed(string(user.FindSubmatch(found)[1]))) })
	file := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(file, conf, 0o600))
	o, err := server.ProcessConfigFile(file)
	must(t, err)
	o.JetStream, o.StoreDir = true, t.TempDir()
	s := serve(t, o)
	as := func(role string) *nats.Conn {
		nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: s.ClientURL(), Role: role, NKeySeed: seeds[role]})
		must(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	coordinator, worker := as("coordinator"), as("worker")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	q, err := queue.Open(t.Context(), coordinator, queue.Config{Campaign: "1"})
	must(t, err)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}}))
	must(t, lease(t, attach(t, worker, queue.Config{Campaign: "1"})).Ack(t.Context()))
	b, err := queue.OpenBoard(t.Context(), worker, nil)
	must(t, err)
	must(t, b.Put(t.Context(), "worker.1", []byte("mine")))
	mustBe(t, b.Put(t.Context(), "campaign.1", []byte("forged")), queue.ErrAccess)
	seed("stranger")
	wantRefusal(t, queue.ConnectConfig{URL: s.ClientURL(), Role: "coordinator", NKeySeed: seeds["stranger"]}, queue.ErrAccess)
}
