package coordinator_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
)

// TestAbsurdNumbersInRecord: a record with absurd numbers must not stop the coordinator, which runs all other campaigns
// too. Users may write records.
func TestAbsurdNumbersInRecord(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	stop := tc.lead()
	id := tc.submit("absurd", math.MaxInt)
	tc.awaitPhase(id, record.PhasePreflight)
	stop()
	key := record.KeyCampaignPrefix + id
	data, _, err := tc.board.Get(t.Context(), key)
	must(t, err)
	with := func(items string) {
		t.Helper()
		must(t, tc.board.Put(t.Context(), key, append([]byte(`{"items":`+items+`,`), data[1:]...)))
	}
	with("-5")
	tc.lead()
	tc.work(id)
	other := tc.submit("other", 0)
	tc.work(other)
	tc.awaitPhase(other, record.PhaseFinished)
	with("9223372036854775807")
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts.Done != s.Status.Counts.Items {
		t.Errorf("counts %+v", s.Status.Counts)
	}
}

// TestStatusNamesDamagedWindow truncates a window between two leaders, and repairs it.
func TestStatusNamesDamagedWindow(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	stop := tc.lead()
	id := tc.submit("damaged", 0)
	tc.await(id, "a status", func(s record.CampaignStatus) bool { return s.Status.Counts.Items == 4 })
	stop()
	key := shard.Key(id, 0)
	data, err := tc.store.Get(t.Context(), key)
	must(t, err)
	must(t, tc.store.Put(t.Context(), key, data[:len(data)/2]))
	tc.leadWith(func(c *coordinator.Config) { c.Restart = 50 * time.Millisecond })
	s := tc.await(id, "a problem", func(s record.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.Contains(s.Status.Problem, key) || s.Status.Counts.Items != 4 {
		t.Errorf("status %+v", s.Status)
	}
	must(t, tc.store.Put(t.Context(), key, data))
	tc.work(id)
	if s := tc.awaitDone(id, 4); s.Status.Problem != "" {
		t.Errorf("status %+v", s.Status)
	}
}

// TestWindowsAreRemoved removes the windows of a running campaign, the remedy for a damaged one: the next leader reads the
// dataset again.
func TestWindowsAreRemoved(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.abandonAll()
	stop := tc.lead()
	id := tc.submit("removed", 0)
	tc.work(id)
	tc.await(id, "all items published", func(s record.CampaignStatus) bool { return s.Status.Windows == 1 })
	stop()
	must(t, tc.store.Delete(t.Context(), shard.Key(id, 0)))
	tc.set(nil)
	tc.lead()
	tc.awaitDone(id, 4)
}

// TestSubmitDamagedArchive submits an archived campaign again after its stored record was truncated.
func TestSubmitDamagedArchive(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	stop := tc.leadArchiving(time.Millisecond, unchanged)
	id := tc.submit("archived", 0)
	stopWorker := tc.work(id)
	tc.awaitArchived(id)
	stopWorker()
	stop()
	key := board.StoredKey(id)
	data, err := tc.store.Get(t.Context(), key)
	must(t, err)
	must(t, tc.store.Put(t.Context(), key, data[:len(data)/2]))
	tc.leadArchiving(time.Hour, func(c *coordinator.Config) { c.Restart = 50 * time.Millisecond })
	again := board.Submission{Spec: tc.spec("archived")}
	if err := tc.do(board.VerbSubmit, "", again, nil); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "damaged record") {
		t.Errorf("submitted again: %v", err)
	}
	must(t, tc.store.Put(t.Context(), key, data))
	must(t, tc.do(board.VerbSubmit, "", again, nil))
	tc.await(id, "its end", func(s record.CampaignStatus) bool {
		return s.Status.Problem == "" && s.Status.Counts == record.Counts{Items: 4, Done: 4}
	})
}
