package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// leadArchiving starts a leader that archives campaigns at once, and that commands find.
func (tc *testCluster) leadArchiving(after time.Duration, change func(c *coordinator.Config)) (stop func()) {
	tc.t.Helper()
	return tc.leadWith(func(c *coordinator.Config) {
		c.ArchiveAfter, c.Inspect = after, tc.inspect
		change(c)
	})
}

func unchanged(*coordinator.Config) {}

// archiver is that of another leader.
func (tc *testCluster) archiver() *archive.Archiver {
	return archive.New(archive.Config{
		Board: tc.board, Store: tc.store, Writer: board.NewWriter(tc.board, tc.store), Running: func(string) bool { return false },
		Inspect: func(_ context.Context, id string) (*queue.Queue, error) { return tc.inspect(id) }, Now: time.Now, Logger: tc.log,
	})
}

// recall returns a campaign from the archive to the board.
func (tc *testCluster) recall(id string) error {
	yes := func(*record.Campaign) error { return nil }
	return tc.archiver().Recall(tc.t.Context(), id, yes, yes)
}

// archive archives a campaign that has ended at once.
func (tc *testCluster) archive(id string) error { return tc.archiveContext(tc.t.Context(), id) }

func (tc *testCluster) archiveContext(ctx context.Context, id string) error {
	a := tc.archiver()
	for {
		if err := a.Archive(ctx, id); !errors.Is(err, archive.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
}

// do sends a verb in the name of an administrator.
func (tc *testCluster) do(kind, id string, body, out any) error {
	return board.Do(recordtest.Administrator(tc.t.Context()), tc.board, board.Verb{Kind: kind, Campaign: id}, body, out)
}

// awaitArchived waits until a campaign has left the board: three times in a row, because a listing of the board can miss a record
// that is replaced meanwhile.
func (tc *testCluster) awaitArchived(id string) {
	tc.t.Helper()
	absent := 0
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		keys, err := tc.board.Keys(tc.t.Context(), "")
		must(tc.t, err)
		if strings.Contains(strings.Join(keys, " "), id) {
			absent = 0
		} else if absent++; absent == 3 {
			return
		}
	}
	keys, _ := tc.board.Keys(tc.t.Context(), "")
	tc.t.Fatalf("campaign %s is not archived; the board has %q", id, keys)
}

// mixed makes one item fail and one item dead.
func mixed(it item.Item, _ int) error {
	switch {
	case it.Name == "image000" && it.Task == "hdr":
		return errors.New("no light")
	case it.Name == "image001" && it.Task == "hdr":
		return errDead
	}
	return nil
}

var mixedCounts = record.Counts{Items: 6, Done: 4, Failed: 1, Dead: 1}

// finishMixed runs a campaign to its end with one failed and one dead item.
func (tc *testCluster) finishMixed(name string) (id string) {
	tc.t.Helper()
	tc.set(mixed)
	id = tc.submit(name, 0)
	stop := tc.lead()
	idle := tc.work(id)
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != mixedCounts {
		tc.t.Fatalf("%+v", s.Status.Counts)
	}
	idle()
	stop()
	tc.set(nil)
	return id
}

// checkRecalled recalls a campaign of finishMixed, compares it with the archived state, and retries its items.
func (tc *testCluster) checkRecalled(id string) {
	tc.t.Helper()
	must(tc.t, tc.recall(id))
	must(tc.t, tc.recall(id))
	s, err := board.Status(tc.t.Context(), tc.board, id)
	must(tc.t, err)
	if s.Status.Counts != mixedCounts || s.Campaign.Phase != record.PhaseFinished || s.Status.Phase != record.PhaseFinished {
		tc.t.Errorf("recalled as %+v, status %+v", s.Campaign, s.Status)
	}
	tc.work(id)
	a, err := tc.command(id, command{
		Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed, item.OutcomeDead},
	})
	must(tc.t, err)
	if a.Items != 2 {
		tc.t.Errorf("%d items are retried, want 2", a.Items)
	}
	tc.await(id, "all done", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == record.Counts{Items: 6, Done: 6}
	})
}

// TestRequestsInARow: a request is answered as quickly after others as alone.
func TestRequestsInARow(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	tc.leadArchiving(time.Hour, unchanged)
	quickest := time.Hour
	for i := range 12 {
		begin := time.Now()
		if err := tc.do("pause", "unknown-12345678", nil, nil); !errors.Is(err, api.ErrNotFound) {
			t.Fatalf("pause of an unknown campaign: %v", err)
		}
		if i >= 9 {
			quickest = min(quickest, time.Since(begin))
		}
	}
	if quickest > time.Second {
		t.Errorf("the last requests took %v or more", quickest)
	}
}

// TestArchiveAndRecall archives a campaign several times in quick succession.
func TestArchiveAndRecall(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	id := tc.finishMixed("old")
	stop := tc.leadArchiving(50*time.Millisecond, unchanged)
	tc.awaitArchived(id)
	all, err := archive.List(t.Context(), tc.store)
	must(t, err)
	if len(all) != 1 || all[0].Campaign.ID != id || all[0].Status.Counts != mixedCounts || all[0].Archived.IsZero() ||
		all[0].Campaign.Phase != record.PhaseFinished {
		t.Errorf("archived campaigns: %+v", all)
	}
	must(t, tc.recall(id)) // which is archived again at once
	tc.awaitArchived(id)
	if err := tc.recall("unknown-12345678"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("recall of an unknown campaign: %v", err)
	}
	stop()

	stop = tc.leadArchiving(time.Hour, unchanged)
	tc.checkRecalled(id)
	stop()
	tc.leadArchiving(50*time.Millisecond, unchanged)
	tc.awaitArchived(id)
	if all, err = archive.List(t.Context(), tc.store); err != nil || len(all) != 1 || all[0].Status.Counts.Done != 6 {
		t.Errorf("archived again: %+v, %v", all, err)
	}
}

// TestArchiveCrash ends the leader at each write of an archiving. The next leader completes it.
func TestArchiveCrash(t *testing.T) {
	t.Parallel()
	nothing := func(*testCluster, string) {}
	deleteStatus := func(tc *testCluster, id string) {
		must(tc.t, tc.board.Delete(tc.t.Context(), record.KeyStatusPrefix+id))
	}
	for _, c := range []struct {
		name string
		// writes is the number of writes to the store before the crash; then makes the later writes to the board.
		writes int
		then   func(tc *testCluster, id string)
	}{
		{"before the index", 0, nothing},
		{"before the status", 1, nothing},
		{"before the record", 1, deleteStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 3)
			id := tc.finishMixed(c.name)
			ctx, crash := context.WithCancel(t.Context())
			var writes atomic.Int64
			store := &hookedStore{Store: tc.store, before: func(call, _ string) error {
				if (call == "put" || call == "create") && int(writes.Add(1)) > c.writes {
					crash()
					return context.Canceled
				}
				return nil
			}, after: func(string, string) {
				if int(writes.Load()) == c.writes {
					crash()
				}
			}}
			service, err := coordinator.New(tc.config(func(cfg *coordinator.Config) {
				cfg.ArchiveAfter, cfg.Inspect, cfg.Store = 50*time.Millisecond, tc.inspect, store
			}))
			must(t, err)
			_ = service.Lead(ctx)
			if ctx.Err() == nil || t.Context().Err() != nil {
				t.Fatal("the leader has not crashed")
			}
			c.then(tc, id)

			stop := tc.leadArchiving(50*time.Millisecond, unchanged)
			tc.awaitArchived(id)
			stop()
			stop = tc.leadArchiving(time.Hour, unchanged)
			tc.checkRecalled(id)
			stop()
		})
	}
}

func TestResumeDuringArchiving(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	id := tc.submit("wakes", 0)
	stop := tc.lead()
	tc.want(id, record.WantCancelNow)
	tc.awaitPhase(id, record.PhaseCancelled)
	stop()
	var resumed atomic.Bool
	stop = tc.leadArchiving(50*time.Millisecond, func(c *coordinator.Config) {
		c.Store = &hookedStore{Store: tc.store, before: func(call, key string) error { // between the archive and the deletion of the record
			if call == "put" && strings.Contains(key, ".archived.") && !resumed.Swap(true) {
				tc.want(id, record.WantRun)
			}
			return nil
		}}
	})
	tc.work(id)
	for tc.results(id) < 6 { // the test's deadline limits the wait
		time.Sleep(10 * time.Millisecond)
	}
	tc.awaitArchived(id)
	stop()
	tc.leadArchiving(time.Hour, unchanged)
	must(t, tc.recall(id))
	if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != (record.Counts{Items: 6, Done: 6}) {
		t.Errorf("%+v", s.Status.Counts)
	}
}

// A submission of an archived campaign changes nothing, as a submission of any other campaign.
func TestSubmitArchivedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	id := tc.finishMixed("again")
	stop := tc.leadArchiving(50*time.Millisecond, unchanged)
	tc.awaitArchived(id)
	stop()
	tc.leadArchiving(time.Hour, unchanged)
	var again api.Submitted
	must(t, tc.do(board.VerbSubmit, "", board.Submission{Spec: tc.spec("again")}, &again))
	if again.ID != id || again.Created || again.Phase != record.PhaseFinished || again.Recalled.IsZero() {
		t.Errorf("submitted again: %+v", again)
	}
	tc.work(id)
	tc.await(id, "the counts of its end", func(s record.CampaignStatus) bool {
		return s.Status.Phase == record.PhaseFinished && s.Status.Counts == mixedCounts
	})
	tc.checkRecalled(id)
}

// Cancelled and rejected campaigns come back from the archive, and a resumed one finishes.
func TestResumeArchivedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	tc.check.Failed, tc.check.Reason = "memory", "too little"
	id := tc.submit("rejected", 0)
	stop := tc.leadArchiving(50*time.Millisecond, unchanged)
	idle := tc.work(id)
	tc.awaitArchived(id)
	stop()
	idle()
	tc.check.Failed = ""
	tc.leadArchiving(time.Hour, unchanged)
	tc.work(id)
	must(t, tc.recall(id))
	if s := tc.awaitPhase(id, record.PhaseRejected); !strings.Contains(s.Campaign.Reason, "too little") {
		t.Errorf("%+v", s.Campaign)
	}
	tc.want(id, record.WantRun)
	tc.awaitPhase(id, record.PhaseFinished)
}

func TestVerbWithoutLeader(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	must(t, tc.board.Delete(t.Context(), queue.KeyLeader))
	if err := tc.do("pause", "night-12345678", nil, nil); !errors.Is(err, board.ErrNoLeader) || !strings.Contains(err.Error(), "start one: ddiff coordinator") {
		t.Errorf("pause: %v", err)
	}
}

func TestArchiveNow(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	hold := make(chan struct{})
	tc.set(func(item.Item, int) error {
		<-hold
		return nil
	})
	id := tc.submit("now", 0)
	tc.leadArchiving(time.Hour, unchanged)
	tc.work(id)
	tc.await(id, "running", func(s record.CampaignStatus) bool { return s.Status.Counts.Running > 0 })
	if err := tc.archive(id); !errors.Is(err, board.ErrRefused) {
		t.Errorf("a running campaign: %v", err)
	}
	close(hold)
	tc.awaitPhase(id, record.PhaseFinished)
	for range 2 {
		must(t, tc.archive(id))
	}
	tc.awaitArchived(id)
	if err := tc.archive("unknown-12345678"); !errors.Is(err, queue.ErrNoRecord) {
		t.Errorf("an unknown campaign: %v", err)
	}
}

// TestLostBoardKeepsCountsOfEndedCampaign loses the board after the end of a campaign, before its archiving.
func TestLostBoardKeepsCountsOfEndedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 12)
	tc.set(failSome)
	id := tc.submit("ended", 0)
	stop := tc.leadArchiving(time.Hour, unchanged)
	tc.work(id)
	before := tc.awaitPhase(id, record.PhaseFinished).Status.Counts
	stop()
	must(t, tc.board.Delete(t.Context(), record.KeyCampaignPrefix+id))
	must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
	tc.leadArchiving(time.Hour, unchanged)
	tc.await(id, "its counts", func(s record.CampaignStatus) bool { return s.Status.Counts == before })
}
