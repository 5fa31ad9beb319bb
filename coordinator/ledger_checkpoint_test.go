package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// parts returns the keys of the stored parts of outcomes.
func (tc *testCluster) parts(id string) []string {
	tc.t.Helper()
	var keys []string
	for info, err := range tc.store.List(tc.t.Context(), "campaigns/"+id+"/ledger/outcomes-") {
		must(tc.t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// folding makes small parts.
func folding(c *coordinator.Config) { c.Fold = 8 }

// failSome fails each item of one task and buries some of another.
func failSome(it item.Item, _ int) error {
	switch {
	case it.Task == "hdr" && strings.HasPrefix(it.Name, "image00"):
		return errors.New("cannot read")
	case strings.HasPrefix(it.Name, "image01"):
		return errDead
	}
	return nil
}

// halfway runs a campaign of 40 items under a leader that stores its outcomes, stops both after 30 items, and returns the
// status. Outcomes that the leader has not stored stay in the stream.
func (tc *testCluster) halfway(name string) (string, record.Counts) {
	tc.t.Helper()
	gate := make(chan struct{}, 100)
	tc.set(func(it item.Item, n int) error {
		<-gate
		return failSome(it, n)
	})
	id := tc.submit(name, 0)
	stop := tc.leadWith(folding)
	tc.work(id)
	settled := func(c record.Counts) int { return c.Done + c.Failed + c.Dead }
	var s record.CampaignStatus
	for n := 10; n <= 30; n += 10 { // a part for each tick with 8 outcomes
		for range 10 {
			gate <- struct{}{}
		}
		s = tc.await(id, "settled items", func(s record.CampaignStatus) bool { return settled(s.Status.Counts) == n })
		wait(tc.t, patience, "a part", func() bool { return len(tc.parts(id)) == n/10 })
	}
	stop()
	must(tc.t, tc.board.Delete(tc.t.Context(), record.KeyStatusPrefix+id))
	tc.t.Cleanup(func() { close(gate) })
	tc.set(failSome)
	go func() {
		for range 20 { // the worker may hold an item
			gate <- struct{}{}
		}
	}()
	s.Status.Counts.Running, s.Status.Counts.Pending = 0, 10
	return id, s.Status.Counts
}

// outcomes returns the number of the campaign's outcomes in the result stream.
func (tc *testCluster) outcomes(id string) int {
	tc.t.Helper()
	q, err := tc.open(tc.t.Context(), id, 3)
	must(tc.t, err)
	last, err := q.LastResult(tc.t.Context())
	must(tc.t, err)
	if last == 0 {
		return 0
	}
	n := 0
	for res, err := range q.Results(tc.t.Context(), 0) {
		must(tc.t, err)
		if n++; res.Seq >= last {
			return n
		}
	}
	return n
}

// finished expects the final state of the campaign of halfway, and that no item was restored twice.
func (tc *testCluster) finished(id string, want record.Counts) {
	tc.t.Helper()
	tc.await(id, "all outcomes", func(s record.CampaignStatus) bool {
		return s.Status.Phase == record.PhaseFinished && s.Status.Counts == want
	})
	tc.mu.Lock()
	defer tc.mu.Unlock()
	for item, n := range tc.started {
		if n > 1 && item != record.IDPreflight {
			tc.t.Errorf("item %.12s was started %d times", item, n)
		}
	}
}

var allOutcomes = record.Counts{Items: 40, Done: 10, Failed: 10, Dead: 20}

// TestOutcomesMoveToTheStore expects that a new leader continues from the stored outcomes and those of the newest part
// in the stream, and that an ended campaign leaves none in the stream.
func TestOutcomesMoveToTheStore(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 20)
	log := tc.recordLog()
	id, _ := tc.halfway("fold")
	if n := tc.outcomes(id); n > 24 { // of the newest part, without a part, and of the last items
		t.Errorf("%d outcomes are in the stream", n)
	}
	tc.leadWith(folding)
	tc.finished(id, allOutcomes)
	if n := tc.outcomes(id); n != 0 {
		t.Errorf("%d outcomes are in the stream of a finished campaign", n)
	}
	if log.contains(republished) {
		t.Error("the coordinator replaced a healthy queue")
	}
	// Retried items have outcomes of an earlier round in the parts. A new leader ignores them.
	tc.set(nil)
	if a, err := tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed}}); err != nil || a.Items != 10 {
		t.Fatalf("%+v, %v", a, err)
	}
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != (record.Counts{Items: 40, Done: 20, Dead: 20}) {
		t.Errorf("%+v", s.Status.Counts)
	}
}

// TestDamagedPartOfTheLedger damages an older part, and the newest one. The stream has the outcomes of the newest. Stored results
// settle the items of an older one; its failed and dead items run again.
func TestDamagedPartOfTheLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		number   int
		replaced bool
	}{{"dead items", 1, true}, {"newest", 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 20)
			id, _ := tc.halfway("damaged")
			key := tc.parts(id)[c.number]
			data, err := tc.store.Get(t.Context(), key)
			must(t, err)
			data[len(data)/2] ^= 1
			must(t, tc.store.Put(t.Context(), key, data))
			log := tc.recordLog()
			tc.leadWith(folding)
			tc.await(id, "all outcomes", func(s record.CampaignStatus) bool {
				return s.Status.Phase == record.PhaseFinished && s.Status.Counts == allOutcomes
			})
			if !log.contains("skipped a part of the ledger") {
				t.Error("the damage was not logged")
			}
			if log.contains(republished) != c.replaced {
				t.Errorf("the queue was replaced: %v", !c.replaced)
			}
		})
	}
}

// TestReplacedResultStream deletes the result stream; the numbers of its successor are lower than those of the stored
// outcomes.
func TestReplacedResultStream(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 20)
	id, counts := tc.halfway("replaced")
	var info struct {
		Config map[string]any `json:"config"`
	}
	answer, err := tc.nc.Request("$JS.API.STREAM.INFO.DDIFF_RESULT", nil, patience)
	must(t, err)
	must(t, json.Unmarshal(answer.Data, &info))
	info.Config["first_seq"] = time.Now().Add(-time.Hour).UnixMicro()
	config, err := json.Marshal(info.Config)
	must(t, err)
	_, err = tc.nc.Request("$JS.API.STREAM.DELETE.DDIFF_RESULT", nil, patience)
	must(t, err)
	_, err = tc.nc.Request("$JS.API.STREAM.CREATE.DDIFF_RESULT", config, patience)
	must(t, err)
	tc.leadWith(folding)
	tc.await(id, "the stored outcomes", func(s record.CampaignStatus) bool {
		return s.Status.Counts.Failed+s.Status.Counts.Dead >= counts.Failed+counts.Dead-10
	})
	tc.await(id, "all outcomes", func(s record.CampaignStatus) bool {
		return s.Status.Phase == record.PhaseFinished && s.Status.Counts == allOutcomes
	})
	tc.mu.Lock()
	defer tc.mu.Unlock()
	again := 0 // failed and dead items whose outcomes were lost before a part had them: those after the newest part
	for item, n := range tc.started {
		if n > 1 && item != record.IDPreflight {
			again++
		}
	}
	if again > 10 {
		t.Errorf("%d items were started again, want at most 10", again)
	}
}

// TestFullResultStream expects that a campaign with more outcomes than the result stream may have finishes, although
// no part of the ledger is large enough or old enough.
func TestFullResultStream(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 20)
	must(t, queue.Setup(t.Context(), tc.nc, queue.SetupConfig{MaxResults: 15}))
	id := tc.submit("full", 0)
	tc.leadWith(func(c *coordinator.Config) {
		c.Usage = func(ctx context.Context) ([]queue.StreamUsage, error) { return queue.Usage(ctx, tc.nc) }
	})
	tc.work(id)
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts.Done != 40 {
		t.Errorf("%+v", s.Status.Counts)
	}
}
