package queue_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"ddiff/internal/queue"
)

// accounts is a server whose accounts and users are signed tokens, as of nsc.
type accounts struct {
	t       *testing.T
	server  *server.Server
	account nkeys.KeyPair
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		t.Helper()
		k, err := create()
		must(t, err)
		public, err := k.PublicKey()
		must(t, err)
		return k, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	_, systemKey := pair(nkeys.CreateAccount)
	account, accountKey := pair(nkeys.CreateAccount)
	resolver := &server.MemAccResolver{}
	for _, key := range []string{systemKey, accountKey} {
		claims := jwt.NewAccountClaims(key)
		if key == accountKey {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		token, err := claims.Encode(operator)
		must(t, err)
		must(t, resolver.Store(key, token))
	}
	o := jetStream(t)
	o.TrustedOperators = []*jwt.OperatorClaims{jwt.NewOperatorClaims(operatorKey)}
	o.AccountResolver, o.SystemAccount = resolver, systemKey
	return &accounts{t, serve(t, o), account}
}

// user writes a credentials file of a new user, until a time.
func (a *accounts) user(file string, until time.Time) {
	a.t.Helper()
	user, err := nkeys.CreateUser()
	must(a.t, err)
	key, err := user.PublicKey()
	must(a.t, err)
	claims := jwt.NewUserClaims(key)
	claims.Expires = until.Unix()
	token, err := claims.Encode(a.account)
	must(a.t, err)
	seed, err := user.Seed()
	must(a.t, err)
	text, err := jwt.FormatUserConfig(token, seed)
	must(a.t, err)
	must(a.t, os.WriteFile(file, text, 0o600))
}

// TestAttackAccounts: a queue works with the credentials of an operator's account. When they end, a process goes on with those that
// are in the file then; ended ones and those of another operator are refused.
func TestAttackAccounts(t *testing.T) {
	t.Parallel()
	a, other := newAccounts(t), newAccounts(t)
	file := filepath.Join(t.TempDir(), "user.creds")
	cfg := queue.ConnectConfig{URL: a.server.ClientURL(), Credentials: file}
	end := time.Now().Add(3 * time.Second)
	a.user(file, end)
	nc, err := queue.Connect(t.Context(), cfg)
	must(t, err)
	defer nc.Close()
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	board, err := queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "1"})
	must(t, err)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}}))
	a.user(file, time.Now().Add(time.Hour))
	time.Sleep(time.Until(end.Add(time.Second)))
	must(t, board.Put(t.Context(), "campaign.1", []byte("{}")))
	must(t, lease(t, q).Ack(t.Context()))
	a.user(file, time.Now().Add(-time.Minute))
	wantRefusal(t, cfg, queue.ErrAccess)
	other.user(file, time.Now().Add(time.Hour))
	wantRefusal(t, cfg, queue.ErrAccess)
}
