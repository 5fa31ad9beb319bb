package coordinator_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/coordinator/archive"
)

// TestRequestOutlivesLeader: a command whose leader ends midway has the answer of the next leader.
func TestRequestOutlivesLeader(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	id := tc.finishMixed("midway")
	stop := tc.leadArchiving(50*time.Millisecond, unchanged)
	tc.awaitArchived(id)
	stop()
	begun := make(chan struct{})
	first := sync.OnceFunc(func() { close(begun) })
	failing := &hookedStore{Store: tc.store, before: func(call, key string) error {
		if call != "get" || !strings.Contains(key, id) {
			return nil
		}
		first()
		return errors.New("the leader is about to end")
	}}
	stop = tc.leadArchiving(time.Hour, func(c *coordinator.Config) { c.Store = failing })
	var recall sync.WaitGroup
	recall.Go(func() {
		if err := archive.Recall(t.Context(), tc.board, id); err != nil {
			t.Error(err)
		}
	})
	<-begun
	stop()
	tc.leadArchiving(time.Hour, unchanged)
	recall.Wait()
	tc.checkRecalled(id)
}
