package coordinator_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator"
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
		pause(t.Context(), 300*time.Millisecond) // in which it gets the signal
		return errors.New("the leader is about to end")
	}}
	stop = tc.leadArchiving(time.Hour, func(c *coordinator.Config) { c.Store = failing })
	var verb sync.WaitGroup
	verb.Go(func() {
		if err := tc.do("pause", id, nil, nil); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "has finished") {
			t.Error(err)
		}
	})
	<-begun
	stop()
	tc.leadArchiving(time.Hour, unchanged)
	verb.Wait()
	tc.checkRecalled(id)
}
