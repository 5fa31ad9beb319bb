package gpuworker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// mortal is the source of one worker. Reading the poison ends the worker as SIGKILL does: its connection closes, its
// leases expire, and it answers nothing.
type mortal struct {
	manifest.Files
	poison string
	kill   func()
	died   chan struct{}
	end    chan struct{} // closed at the end of the test
}

func (m *mortal) Get(ctx context.Context, path string) ([]byte, error) {
	if path != m.poison {
		return m.Files.Get(ctx, path)
	}
	m.kill()
	close(m.died)
	<-m.end
	return nil, errors.New("this worker is dead")
}

// TestPoisonBuriesNoOtherItem restarts a worker each time it dies of one item among sixteen, with default attempts.
func TestPoisonBuriesNoOtherItem(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: time.Second})
	all := items(t, 16)
	poison := all[3]
	publish(t, h.queue, all...)
	ended := make(chan map[string]item.Result, 1)
	go func() { ended <- results(t, h.queue, len(all)) }()
	var got map[string]item.Result
	for n := 1; got == nil; n++ {
		died := h.start(fmt.Sprintf("w%d", n), poison.Image.Path)
		select {
		case <-died:
		case got = <-ended:
		case <-time.After(patience):
			t.Fatal("timeout")
		}
	}
	for _, it := range all {
		want := item.OutcomeDone
		if it.ID == poison.ID {
			want = item.OutcomeDead
		}
		if r := got[it.Name]; r.Outcome != want {
			t.Errorf("item %s is %s: %s", it.Name, r.Outcome, r.Reason)
		}
	}
	wantEmpty(t, h.queue)
	reason := got[poison.Name].Reason
	for _, part := range []string{"ended 2 workers that held no other item", "w2 (attempt 2", "w3 (attempt 3", "last stage fetch", "killed by a signal"} {
		if !strings.Contains(reason, part) {
			t.Errorf("the reason %q lacks %q", reason, part)
		}
	}
	for _, it := range all {
		workertest.Until(t, "the record of starts of item "+it.Name+" remains", func() bool {
			_, err := h.store.Get(t.Context(), "checkpoints/"+it.ID+".starts")
			return err != nil
		})
	}
}

// TestSuspectsAreNotStarvedByAnotherCampaign: one campaign has only items on their second attempt, another one of the same
// weight has many new ones.
func TestSuspectsAreNotStarvedByAnotherCampaign(t *testing.T) {
	c := newCluster(t)
	c.submit("old")
	c.submit("new")
	const suspects, others = 5, 400
	c.fill("new", others)
	q := c.fill("old", suspects)
	leases, err := q.Lease(t.Context(), suspects, patience)
	must(t, err)
	for _, l := range leases {
		must(t, l.Retry(t.Context(), 0))
	}
	cfg := c.simulated(20 * time.Millisecond)
	c.read()
	w := start(t, cfg)
	created := c.store.waitFor(t, func(created []string) bool { return count(created, "old") == suspects })
	// Each suspect waits for about three others. On a busy machine it misses turns; if it starves, it waits for all.
	if n := count(created, "new"); n > others/2 {
		t.Errorf("%d of %d items of the other campaign were restored before %d suspects", n, others, suspects)
	}
	w.stop(t)
}
