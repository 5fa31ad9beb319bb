package coordinator_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// shared is the output of two campaigns.
const shared = "shared"

// archivedPair is a store with two archived campaigns, which the first test that needs it makes.
var archivedPair struct {
	once           sync.Once
	dir, all, part string
}

// sharing returns a cluster with a copy of archivedPair in dir.
func sharing(t *testing.T, dir string) (tc *testCluster, all, part string) {
	t.Helper()
	pair := &archivedPair
	pair.once.Do(func() {
		var err error
		pair.dir, err = os.MkdirTemp("", "ddiff-pair") //nolint:usetesting // several tests use it
		must(t, err)
		pair.all, pair.part = archivePair(t, pair.dir)
	})
	must(t, os.CopyFS(dir, os.DirFS(pair.dir)))
	tc = newTestCluster(t, 3)
	store, err := storage.NewDir(dir)
	must(t, err)
	tc.store, tc.output = store, shared
	return tc, pair.all, pair.part
}

// archivePair runs two campaigns with one output in dir and archives them: all has the items of both tasks, part those of
// one task.
func archivePair(t *testing.T, dir string) (all, part string) {
	t.Helper()
	tc := newTestCluster(t, 3)
	store, err := storage.NewDir(dir)
	must(t, err)
	tc.store, tc.output = store, shared
	submit := func(spec *manifest.Spec) string {
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{Output: shared}, time.Now())
		must(t, err)
		return c.ID
	}
	spec := tc.spec("part")
	spec.Tasks = spec.Tasks[:1]
	all, part = submit(tc.spec("all")), submit(spec)
	stop := tc.leadArchiving(time.Hour, unchanged)
	for _, id := range []string{all, part} {
		idle := tc.work(id)
		tc.awaitPhase(id, record.PhaseFinished)
		idle()
		must(t, tc.archive(id))
	}
	stop()
	must(t, store.Delete(t.Context(), board.OwnerFolder+"000001.json")) // the copies belong to other clusters
	return all, part
}

// keysOf lists the keys of a store that contain a text, without those that remember deletions.
func keysOf(t *testing.T, s storage.Store, text string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), "") {
		must(t, err)
		if strings.Contains(info.Key, text) && !index.IsTombstone(info.Key) {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

func resultKeys(t *testing.T, s storage.Store) []string { return keysOf(t, s, "/"+item.FileResult) }

func TestDeleteKeepsSharedResults(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	before := resultKeys(t, tc.store)
	cleaner := &gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext, DryRun: true}
	planned, err := cleaner.Delete(t.Context(), all, true)
	must(t, err)
	if now := resultKeys(t, tc.store); len(before) != 6 || !slices.Equal(now, before) {
		t.Fatalf("a dry run changes %q to %q", before, now)
	}
	cleaner.DryRun = false
	removed, err := cleaner.Delete(t.Context(), all, true)
	must(t, err)
	planned = slices.DeleteFunc(planned, func(r api.Removal) bool { return r.Kind == "index" }) // the claim is new
	done := slices.DeleteFunc(slices.Clone(removed), func(r api.Removal) bool { return r.Kind == "index" })
	if !slices.Equal(planned, done) || removed[0].Kind != "results" || removed[0].Objects != 3 || removed[0].Bytes == 0 {
		t.Errorf("planned %+v, removed %+v", planned, removed)
	}
	if n := len(resultKeys(t, tc.store)); n != 3 {
		t.Errorf("%d results are left, want the 3 of the other campaign", n)
	}
	if keys := keysOf(t, tc.store, all); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
	if _, err := tc.store.Get(t.Context(), shared+"/"+report.KeyCSV); err != nil {
		t.Errorf("the report of the other campaign: %v", err)
	}
	if _, err := cleaner.Delete(t.Context(), all, true); !errors.Is(err, queue.ErrNoRecord) {
		t.Errorf("a second deletion: %v", err)
	}
	_, err = cleaner.Delete(t.Context(), part, true)
	must(t, err)
	if keys := keysOf(t, tc.store, ""); !slices.Equal(keys, []string{index.KeyComplete}) {
		t.Errorf("left: %q", keys)
	}
}

// One false answer that a campaign has no record leaves no results, and the deletion is remembered.
func TestAttackOneLieOfDeletion(t *testing.T) {
	t.Parallel()
	tc, all, _ := sharing(t, t.TempDir())
	c, err := board.Load(t.Context(), tc.store, all)
	must(t, err)
	lies := 0
	store := &hookedStore{Store: tc.store, before: func(call, key string) error {
		if call == "get" && key == board.StoredKey(all) && lies == 0 {
			lies++
			return storage.ErrNotFound
		}
		return nil
	}}
	_, err = (&gc.Cleaner{Store: store}).Delete(t.Context(), all, true)
	must(t, err)
	if buried, err := index.New(tc.store).Buried(t.Context(), c); err != nil || !buried || lies != 1 {
		t.Errorf("the deletion is remembered: %t, %v", buried, err)
	}
	if n := len(resultKeys(t, tc.store)); n != 3 {
		t.Errorf("%d results are left, want the 3 of the other campaign", n)
	}
}

func TestDeleteWithoutResults(t *testing.T) {
	t.Parallel()
	tc, all, _ := sharing(t, t.TempDir())
	_, err := (&gc.Cleaner{Store: tc.store}).Delete(t.Context(), all, false)
	must(t, err)
	if n := len(resultKeys(t, tc.store)); n != 6 {
		t.Errorf("%d results, want 6", n)
	}
	if keys := keysOf(t, tc.store, all); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
}

// TestDeleteRefusesOpenCampaigns: a campaign that has not ended, and results that such a campaign may need.
func TestDeleteRefusesOpenCampaigns(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	cleaner := &gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}
	refused := func(id string, results bool, want string) {
		t.Helper()
		before := keysOf(t, tc.store, "")
		_, err := cleaner.Delete(t.Context(), id, results)
		if !errors.Is(err, board.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("delete %s, results %v: %v, want %q", id, results, err, want)
		}
		if now := keysOf(t, tc.store, ""); !slices.Equal(now, before) {
			t.Errorf("the refusal changes %q to %q", before, now)
		}
	}
	spec := tc.spec("third")
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{Output: shared}, time.Now())
	must(t, err)
	refused(c.ID, false, "queued; cancel it first")
	refused(all, true, c.ID+", which has not ended")
	// The same through the index, for a campaign that the board has lost.
	must(t, tc.board.Delete(t.Context(), record.KeyCampaignPrefix+c.ID))
	stop := tc.leadArchiving(time.Hour, unchanged)
	must(t, tc.recall(part))
	stop()
	cleaner.Board = nil
	refused(all, true, ", which has not ended")
	refused(part, false, "ddiff delete")
}

// aroundClaim calls before ahead of the write of the entry of a deletion in the index, and after after it.
func aroundClaim(store storage.Store, before, after func()) storage.Store {
	isClaim := func(call, key string) bool { return call == "put" && strings.Contains(key, ".deleting.") }
	return &hookedStore{Store: store, before: func(call, key string) error {
		if isClaim(call, key) {
			before()
		}
		return nil
	}, after: func(call, key string) {
		if isClaim(call, key) {
			after()
		}
	}}
}

// A recall and a deletion at the same time: one of them is refused, and a recalled campaign is complete.
func TestDeleteAndRecall(t *testing.T) {
	t.Parallel()
	tc, all, _ := sharing(t, t.TempDir())
	tc.leadArchiving(time.Hour, unchanged)
	var recalled error
	recall := func() { recalled = tc.recall(all) }
	nothing := func() {}
	before := resultKeys(t, tc.store)

	cleaner := &gc.Cleaner{Store: aroundClaim(tc.store, recall, nothing), Board: tc.board, Archive: tc.archiveContext}
	_, err := cleaner.Delete(t.Context(), all, true)
	must(t, recalled)
	if !errors.Is(err, board.ErrRefused) {
		t.Errorf("delete a campaign that was recalled: %v", err)
	}
	if now := resultKeys(t, tc.store); !slices.Equal(now, before) {
		t.Errorf("results %q, before %q", now, before)
	}
	if s, err := board.Status(t.Context(), tc.board, all); err != nil || s.Status.Counts.Done != 6 {
		t.Errorf("%+v, %v", s.Status, err)
	}

	cleaner.Store = aroundClaim(tc.store, nothing, recall)
	_, err = cleaner.Delete(t.Context(), all, true)
	must(t, err)
	if !errors.Is(recalled, index.ErrDeleting) {
		t.Errorf("recall of a campaign that is being deleted: %v", recalled)
	}
	if keys := keysOf(t, tc.store, all); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
}

// TestAttackLateRecord: a coordinator that was paused while it stored a record stores it after the deletion of the campaign, which stays
// deleted.
func TestAttackLateRecord(t *testing.T) {
	t.Parallel()
	tc, all, _ := sharing(t, t.TempDir())
	tc.leadArchiving(time.Hour, unchanged)
	late, err := tc.store.Get(t.Context(), board.StoredKey(all))
	must(t, err)
	_, err = (&gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}).Delete(t.Context(), all, false)
	must(t, err)
	must(t, tc.store.Put(t.Context(), board.StoredKey(all), late))
	if err := tc.recall(all); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("recall: %v", err)
	}
	if _, err := board.Read(t.Context(), tc.board, all); !errors.Is(err, queue.ErrNoRecord) {
		t.Errorf("on the board: %v", err)
	}
}

var errStopped = errors.New("crash")

// stopping is a store that fails from a deletion on.
func stopping(store storage.Store, deletions int64) storage.Store {
	var n atomic.Int64
	return &hookedStore{Store: store, before: func(call, key string) error {
		if call == "delete" && !strings.HasSuffix(key, gc.Probe) && n.Add(1) > deletions {
			return errStopped
		}
		return nil
	}}
}

// TestDeleteCrash stops a deletion after each number of deleted objects. The next deletion, or the next collection of
// garbage, completes it, and the other campaign keeps its results at any time.
func TestDeleteCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("crashes at every write: make test-all")
	}
	t.Parallel()
	template := t.TempDir()
	tc, all, part := sharing(t, template)
	before := keysOf(t, tc.store, "campaigns/"+part)
	for n := int64(0); ; n++ {
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(template)))
		store, err := storage.NewDir(dir)
		must(t, err)
		check := func(when string, results int) {
			t.Helper()
			if now := keysOf(t, store, "campaigns/"+part); !slices.Equal(now, before) {
				t.Fatalf("%s after %d deletions: the other campaign has %q, before %q", when, n, now, before)
			}
			found := len(resultKeys(t, store))
			if found < 3 || results > 0 && found != results {
				t.Fatalf("%s after %d deletions: %d results", when, n, found)
			}
		}
		_, err = (&gc.Cleaner{Store: stopping(store, n)}).Delete(t.Context(), all, true)
		check("crash", 0)
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		if n%2 == 0 {
			_, err = (&gc.Cleaner{Store: store}).Delete(t.Context(), all, false) // the index remembers the results
		} else {
			_, err = (&gc.Cleaner{Store: store}).Collect(t.Context(), gc.Config{})
		}
		must(t, err)
		check("completed", 3)
		if keys := keysOf(t, store, all); len(keys) > 0 {
			t.Fatalf("after %d deletions: left %q", n, keys)
		}
	}
}

// gated is a store that calls begin before it deletes an object.
func gated(store storage.Store, begin func()) storage.Store {
	return &hookedStore{Store: store, before: func(call, key string) error {
		if call == "delete" && !strings.HasSuffix(key, gc.Probe) {
			begin()
		}
		return nil
	}}
}

// TestSubmitDuringDeletionOfResults submits a campaign with the same items while their results are being deleted.
func TestSubmitDuringDeletionOfResults(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	_, err := (&gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}).Delete(t.Context(), part, false)
	must(t, err)
	tc.leadArchiving(time.Hour, unchanged)
	var late record.CampaignStatus
	begin := sync.OnceFunc(func() {
		spec := tc.spec("late")
		spec.Tasks = spec.Tasks[:1]
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{Output: shared}, time.Now())
		must(t, err)
		tc.work(c.ID)
		late = tc.await(c.ID, "its end", func(s record.CampaignStatus) bool { return s.Campaign.Phase.Ended() })
	})
	cleaner := &gc.Cleaner{Store: gated(tc.store, begin), Board: tc.board, Archive: tc.archiveContext}
	_, err = cleaner.Delete(t.Context(), all, true)
	left := len(resultKeys(t, tc.store))
	if late.Campaign.Phase == record.PhaseFinished && left != late.Status.Counts.Done {
		t.Errorf("a finished campaign has %d items and %d results (%v)", late.Status.Counts.Done, left, err)
	}
	if late.Campaign.Phase != record.PhaseRejected || !strings.Contains(late.Campaign.Reason, all) {
		t.Fatalf("%s: %s", late.Campaign.Phase, late.Campaign.Reason)
	}
	cleaner.Store = tc.store
	if _, err := cleaner.Delete(t.Context(), all, true); err != nil && !errors.Is(err, queue.ErrNoRecord) {
		t.Fatal(err)
	}
	tc.want(late.Campaign.ID, record.WantRun)
	tc.awaitPhase(late.Campaign.ID, record.PhaseFinished)
	if n := len(resultKeys(t, tc.store)); n != 3 {
		t.Errorf("%d results, want 3", n)
	}
}
