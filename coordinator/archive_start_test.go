package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// archiveMany enters n archived campaigns into the index of a store in dir, without a copy of their records.
func archiveMany(t *testing.T, dir string, n int) {
	t.Helper()
	index := filepath.Join(dir, "campaigns", ".index")
	must(t, os.MkdirAll(index, 0o755))
	write := func(name string) { must(t, os.WriteFile(filepath.Join(index, name), nil, 0o644)) }
	for i := range n {
		write(fmt.Sprintf("old%05d-12345678.000001.archived.0.finished.normal.1.%d.5.0.0.0.1700000000.1700000100.1700000200.0.0", i, i))
	}
	write("complete")
}

// TestStartReadsNoArchivedCampaign: the start of a coordinator reads no object of a campaign in the archive, and finds a
// campaign that the board has lost among many.
func TestStartReadsNoArchivedCampaign(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	dir := t.TempDir()
	var err error
	tc.store, err = storage.NewDir(dir)
	must(t, err)
	id := tc.finishMixed("lost")
	archiveMany(t, dir, 300)
	must(t, tc.board.Delete(t.Context(), record.KeyCampaignPrefix+id))
	var mu sync.Mutex
	var read []string
	store := &hookedStore{Store: tc.store, before: func(call, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if call == "get" {
			read = append(read, key)
		}
		return nil
	}}
	tc.leadArchiving(time.Hour, func(c *coordinator.Config) { c.Store = store })
	tc.awaitPhase(id, record.PhaseFinished)
	mu.Lock()
	defer mu.Unlock()
	for _, key := range read {
		if !strings.Contains(key, id) && !strings.HasPrefix(key, board.OwnerFolder) {
			t.Errorf("the start reads %s", key)
		}
	}
}

// TestListManyArchived lists more archived campaigns than one answer has.
func TestListManyArchived(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	dir := t.TempDir()
	var err error
	tc.store, err = storage.NewDir(dir)
	must(t, err)
	const n = 4100
	archiveMany(t, dir, n)
	tc.leadArchiving(time.Hour, unchanged)
	all, err := archive.List(t.Context(), tc.store)
	must(t, err)
	if len(all) != n {
		t.Fatalf("%d campaigns, want %d", len(all), n)
	}
	for i, s := range all {
		if s.Campaign.ID != fmt.Sprintf("old%05d-12345678", i) || s.Status.Counts.Items != i {
			t.Fatalf("number %d is %+v", i, s)
		}
	}
}

// A recall of a campaign whose stored record is damaged is refused with the reason, and the campaign stays in the archive.
func TestRecallDamagedArchive(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	id := tc.finishMixed("damaged")
	stop := tc.leadArchiving(50*time.Millisecond, unchanged)
	tc.awaitArchived(id)
	stop()
	must(t, tc.store.Put(t.Context(), board.StoredKey(id), []byte("garbage")))
	tc.leadArchiving(time.Hour, unchanged)
	if err := tc.do("pause", id, nil, nil); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "stored record") {
		t.Errorf("pause: %v", err)
	}
	if all, err := archive.List(t.Context(), tc.store); err != nil || len(all) != 1 {
		t.Errorf("archived: %+v, %v", all, err)
	}
}

// TestArchiveWalk archives campaigns at once under two leaders that come and go, while users recall, retry and resume
// them. No item or failure is lost.
func TestArchiveWalk(t *testing.T) {
	tc := newTestCluster(t, 3)
	var ids []string
	for i := range 3 {
		ids = append(ids, tc.finishMixed(fmt.Sprintf("walk%d", i)))
	}
	random := rand.New(rand.NewPCG(7, 8))
	end := time.Now().Add(1500 * time.Millisecond)
	var leaders sync.WaitGroup
	for range 2 {
		pauses := rand.New(rand.NewPCG(random.Uint64(), 1))
		leaders.Go(func() {
			for time.Now().Before(end) {
				stop := tc.leadArchiving(60*time.Millisecond, unchanged)
				pause(t.Context(), time.Duration(100+pauses.IntN(300))*time.Millisecond)
				stop()
			}
		})
	}
	for time.Now().Before(end) {
		id := ids[random.IntN(len(ids))]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		switch random.IntN(3) {
		case 0:
			_ = tc.recall(id) // it may be archived just now
		case 1:
			_ = tc.archive(id)
		case 2:
			_ = board.Do(recordtest.Administrator(ctx), tc.board, board.Verb{Kind: board.VerbReconcile, Campaign: id}, board.Command{}, nil)
		}
		cancel()
	}
	leaders.Wait()
	tc.leadArchiving(time.Hour, unchanged)
	for _, id := range ids {
		must(t, tc.recall(id))
		tc.await(id, "its end", func(s record.CampaignStatus) bool {
			return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == mixedCounts
		})
		tc.checkRecalled(id)
	}
}

// TestFailuresOfCanarySurviveArchive: the failures of a campaign that was rejected in its canary are there after its return from the archive.
func TestFailuresOfCanarySurviveArchive(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.set(func(item.Item, int) error { return errors.New("no light") })
	id := tc.submit("reasons", 2)
	stop := tc.lead()
	idle := tc.work(id)
	tc.awaitPhase(id, record.PhaseRejected)
	idle()
	stop()
	stop = tc.leadArchiving(time.Millisecond, unchanged)
	tc.awaitArchived(id)
	stop()
	tc.leadArchiving(time.Hour, unchanged)
	must(t, tc.recall(id))
	q, err := tc.inspect(id)
	must(t, err)
	last, err := q.LastResult(t.Context())
	must(t, err)
	parts := 0
	for _, err := range tc.store.List(t.Context(), "campaigns/"+id+"/ledger/") {
		must(t, err)
		parts++
	}
	if last == 0 && parts == 0 {
		t.Error("the outcomes of the canary are lost")
	}
}
