package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// forgetfulStore does not find the revocations of tokens.
type forgetfulStore struct{ storage.Store }

func (s forgetfulStore) Stat(ctx context.Context, key string) (storage.Info, error) {
	if strings.HasPrefix(key, "coordinators/revoked/") {
		return storage.Info{}, fmt.Errorf("stat %s: %w", key, storage.ErrNotFound)
	}
	return s.Store.Stat(ctx, key)
}

// TestAttackForgottenRevocation: a backup of the board returns a revoked token, and the store does not find its revocation. The token is gone
// soon, also when another leader begins.
func TestAttackForgottenRevocation(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	key := manifest.KeyTokenPrefix + strings.Repeat("ab", 32)
	put := func(revoked bool) {
		data, err := json.Marshal(manifest.Token{ID: "abababababab", Owner: "carl", Role: "admin", Revoked: revoked})
		must(t, err)
		must(t, tc.board.Put(t.Context(), key, data))
	}
	awaitGone := func() {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			_, _, err := tc.board.Get(t.Context(), key)
			if errors.Is(err, queue.ErrNoRecord) {
				return
			}
			must(t, err)
			if time.Now().After(end) {
				t.Fatal("the board has a revoked token")
			}
		}
	}
	forgets := func(c *coordinator.Config) { c.Store, c.Probe = forgetfulStore{tc.store}, 50*time.Millisecond }
	stop := tc.leadArchiving(time.Hour, forgets)
	put(true)
	awaitGone()
	put(false)
	awaitGone()
	stop()
	put(false)
	tc.leadArchiving(time.Hour, forgets)
	awaitGone()
}
