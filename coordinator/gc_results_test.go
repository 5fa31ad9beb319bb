package coordinator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
	"ddiff/storage/s3test"
)

// orphaned runs a campaign, and deletes it without its results, whose folder has its id.
func (tc *testCluster) orphaned(spec *manifest.Spec) (id string) {
	tc.t.Helper()
	stop := tc.leadArchiving(time.Hour, unchanged)
	id = tc.finish(spec, "")
	_, err := (&gc.Cleaner{Store: tc.store, Board: tc.board}).Delete(tc.t.Context(), id, false)
	must(tc.t, err)
	stop()
	if n := tc.results(id); n != 6 {
		tc.t.Fatalf("%d results, want 6", n)
	}
	return id
}

// finish submits a campaign, and works on it until its end.
func (tc *testCluster) finish(spec *manifest.Spec, output string) (id string) {
	tc.t.Helper()
	c, _, err := board.Submit(tc.t.Context(), tc.board, spec, board.Order{Output: output}, time.Now())
	must(tc.t, err)
	defer tc.work(c.ID)()
	tc.awaitPhase(c.ID, manifest.PhaseFinished)
	return c.ID
}

// claims lists the claims of collections in the index.
func claims(t *testing.T, s storage.Store) []string { return keysOf(t, s, ".deleting.") }

// TestCollectResults deletes results without a campaign. Those of campaigns in the archive and on the board, young ones,
// folders with other names and folders with foreign objects stay.
func TestCollectResults(t *testing.T) {
	t.Parallel()
	tc, dir := newTestCluster(t, 3), t.TempDir()
	var err error
	tc.store, err = storage.NewDir(dir)
	must(t, err)
	gone := tc.orphaned(tc.spec("gone"))
	stop := tc.leadArchiving(time.Hour, unchanged)
	archived := tc.finish(tc.spec("archived"), "")
	tc.output = "used-12345678"
	tc.finish(tc.spec("on-board"), tc.output)
	must(t, archive.Archive(t.Context(), tc.board, archived))
	stop()
	item := "/items/" + strings.Repeat("0", 64) + "/"
	for _, key := range []string{
		"holiday-12345678/photo.png", "figures-12345678/figures/pairs_a.svg", "mixed-12345678" + item + manifest.FileResult, "mixed-12345678/notes.txt",
		"run-12345678" + item + manifest.FileResult, "run-12345678/.ddiff/lock", "photos" + item + manifest.FileResult, "used-12345678/results.csv",
		"nested-12345678/sheets" + item + manifest.FileResult, gone + item + manifest.FileRestored, gone + "/checkpoints/" + strings.Repeat("0", 64) + ".starts",
	} {
		must(t, tc.store.Put(t.Context(), key, []byte("12345")))
	}
	must(t, os.MkdirAll(filepath.Join(dir, gone, "probes"), 0o755)) // as workers leave it
	server := s3test.Start(t, s3test.Options{})
	bucket, err := storage.OpenS3(t.Context(), server.Config(server.Bucket(t)))
	must(t, err)
	for info, err := range tc.store.List(t.Context(), "") {
		must(t, err)
		data, err := tc.store.Get(t.Context(), info.Key)
		must(t, err)
		must(t, bucket.Put(t.Context(), info.Key, data))
	}
	for name, store := range map[string]storage.Store{"directory": tc.store, "S3": bucket} {
		t.Run(name, func(t *testing.T) {
			before := keysOf(t, store, "")
			of := keysOf(t, store, gone+"/")
			collect := func(now func() time.Time, board *queue.Board, dry bool) ([]gc.Removal, []gc.Left) {
				t.Helper()
				cleaner := &gc.Cleaner{Store: store, Board: board, DryRun: dry, Now: now}
				removed, left, err := cleaner.CollectResults(t.Context(), 99*time.Hour)
				must(t, err)
				return removed, left
			}
			if removed, left := collect(time.Now, tc.board, false); len(removed) > 0 || len(left) > 0 {
				t.Errorf("young results: %+v, %+v", removed, left)
			}
			planned, named := collect(later, tc.board, true)
			withoutBoard, _ := collect(later, nil, true)
			if now := keysOf(t, store, ""); !slices.Equal(now, before) {
				t.Fatalf("a dry run changes %q to %q", before, now)
			}
			removed, left := collect(later, tc.board, false)
			if !slices.Equal(planned, removed) || !slices.Equal(withoutBoard, removed) || !slices.Equal(named, left) || len(removed) != 1 {
				t.Fatalf("planned %+v, %+v, without board %+v, removed %+v, %+v", planned, named, withoutBoard, removed, left)
			}
			if r := removed[0]; r.Kind != "results" || r.Name != gone || r.Items != 7 || r.Objects != len(of) || r.Bytes < 10 {
				t.Errorf("removed %+v, the folder had %q", r, of)
			}
			want := []gc.Left{
				{Name: "figures-12345678", Reason: "it has no result of a campaign"},
				{Name: "holiday-12345678", Reason: "it has photo.png, which no campaign writes"},
				{Name: "mixed-12345678", Reason: "it has notes.txt, which no campaign writes"},
				{Name: "nested-12345678", Reason: "it has sheets" + item + manifest.FileResult + ", which no campaign writes"},
				{Name: "run-12345678", Reason: "it has .ddiff/lock, which no campaign writes"},
			}
			if !slices.Equal(left, want) {
				t.Errorf("left %+v", left)
			}
			if _, err := os.Stat(filepath.Join(dir, gone)); name == "directory" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder: %v", err)
			}
			rest := slices.DeleteFunc(before, func(key string) bool { return strings.HasPrefix(key, gone+"/") })
			if now := keysOf(t, store, ""); !slices.Equal(now, rest) {
				t.Errorf("%q is now %q", rest, now)
			}
		})
	}
}

// TestSubmitDuringCollectionOfResults submits the campaign of a folder again, and another one with this output, while the
// folder is deleted. Both are rejected, and after the deletion they have all their results.
func TestSubmitDuringCollectionOfResults(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	gone := tc.orphaned(tc.spec("gone"))
	tc.output = gone
	tc.leadArchiving(time.Hour, unchanged)
	var ids []string
	begin := sync.OnceFunc(func() {
		for _, name := range []string{"gone", "other"} {
			c, _, err := board.Submit(t.Context(), tc.board, tc.spec(name), board.Order{Output: gone}, time.Now())
			must(t, err)
			tc.work(c.ID)
			s := tc.await(c.ID, "its end", func(s manifest.CampaignStatus) bool { return s.Campaign.Phase.Ended() })
			if s.Campaign.Phase != manifest.PhaseRejected || !strings.Contains(s.Campaign.Reason, "ddiff gc --results") {
				t.Errorf("%s: %s (%s)", c.ID, s.Campaign.Phase, s.Campaign.Reason)
			}
			ids = append(ids, c.ID)
			// Garbage collection by another command keeps the claim.
			_, err = (&gc.Cleaner{Store: tc.store, Board: tc.board}).Collect(t.Context(), gc.Config{})
			must(t, err)
		}
	})
	cleaner := &gc.Cleaner{Store: gated(tc.store, begin), Board: tc.board, Now: later}
	removed, left, err := cleaner.CollectResults(t.Context(), time.Hour)
	must(t, err)
	if len(removed) != 1 || removed[0].Items != 6 || len(left) > 0 || tc.results(gone) > 0 || len(claims(t, tc.store)) > 0 {
		t.Errorf("removed %+v, left %+v, claims %q", removed, left, claims(t, tc.store))
	}
	if len(ids) != 2 || ids[0] != gone {
		t.Fatalf("campaigns %q", ids)
	}
	for _, id := range ids {
		tc.want(id, manifest.WantRun)
		if s := tc.awaitPhase(id, manifest.PhaseFinished); s.Status.Counts.Done != 6 || tc.results(gone) != 6 {
			t.Errorf("%s: %+v, %d results", id, s.Status.Counts, tc.results(gone))
		}
	}
}

// TestSubmitBeforeCollectionOfResults submits a campaign after the store was listed and before the claim. The output is
// left, whether a coordinator leads or not, and with the index alone.
func TestSubmitBeforeCollectionOfResults(t *testing.T) {
	t.Parallel()
	for name, lead := range map[string]bool{"queued": false, "finished": true} {
		t.Run(name, func(t *testing.T) {
			tc := newTestCluster(t, 3)
			gone := tc.orphaned(tc.spec("gone"))
			tc.output = gone
			before := keysOf(t, tc.store, gone+"/items/")
			if lead {
				tc.leadArchiving(time.Hour, unchanged)
			}
			var late string
			begin := func() {
				if lead {
					late = tc.finish(tc.spec("late"), gone)
					return
				}
				c, _, err := board.Submit(t.Context(), tc.board, tc.spec("late"), board.Order{Output: gone + "/"}, time.Now())
				must(t, err)
				late = c.ID
			}
			cleaner := &gc.Cleaner{Store: aroundClaim(tc.store, sync.OnceFunc(begin), func() {}), Board: tc.board, Now: later}
			if lead {
				cleaner.Board = nil // the index is enough
			}
			removed, left, err := cleaner.CollectResults(t.Context(), time.Hour)
			must(t, err)
			if len(removed) > 0 || !slices.Equal(left, []gc.Left{{Name: gone, Reason: "campaign " + late + " began to use it"}}) {
				t.Errorf("removed %+v, left %+v", removed, left)
			}
			if now := keysOf(t, tc.store, gone+"/items/"); !slices.Equal(now, before) || len(claims(t, tc.store)) > 0 {
				t.Errorf("results %q, before %q", now, before)
			}
			again, left, err := (&gc.Cleaner{Store: tc.store, Board: tc.board, Now: later}).CollectResults(t.Context(), time.Hour)
			if err != nil || len(again) > 0 || len(left) > 0 {
				t.Errorf("the output of the campaign: %+v, %+v, %v", again, left, err)
			}
		})
	}
}

// An object that is written after the first listing makes the output young, and a foreign one keeps it.
func TestCollectResultsListsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tc := newTestCluster(t, 3)
	store, err := storage.NewDir(dir)
	must(t, err)
	tc.store = store
	gone := tc.orphaned(tc.spec("gone"))
	past := time.Now().Add(-2 * time.Hour)
	must(t, filepath.WalkDir(filepath.Join(dir, gone), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, past, past))
	}))
	for _, want := range []struct{ key, reason string }{
		{"/items/" + strings.Repeat("0", 64) + "/" + manifest.FileTrace, "it has new objects"},
		{"/notes.txt", "it has notes.txt, which no campaign writes"},
	} {
		store := aroundClaim(tc.store, func() { must(t, tc.store.Put(t.Context(), gone+want.key, nil)) }, func() {})
		removed, left, err := (&gc.Cleaner{Store: store, Board: tc.board}).CollectResults(t.Context(), time.Hour)
		if err != nil || len(removed) > 0 || !slices.Equal(left, []gc.Left{{Name: gone, Reason: want.reason}}) || tc.results(gone) != 6 {
			t.Errorf("%s: removed %+v, left %+v, %v", want.key, removed, left, err)
		}
		must(t, tc.store.Delete(t.Context(), gone+want.key))
	}
}

// A deletion that lost its claim ends. The claim of one that died rejects campaigns until a collection an hour later.
func TestClaimOfCollectionOfResults(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	gone := tc.orphaned(tc.spec("gone"))
	tc.output = gone
	collect := func(store storage.Store, now func() time.Time) ([]gc.Removal, []gc.Left, error) {
		return (&gc.Cleaner{Store: store, Board: tc.board, Now: now}).CollectResults(t.Context(), time.Hour)
	}
	passed := time.Duration(0)
	minutes := func() time.Time { passed += time.Minute; return later().Add(passed) }
	lists := 0
	steal := func() {
		if lists++; lists != 2 { // the second listing is that of the deletion
			return
		}
		for _, key := range claims(t, tc.store) {
			must(t, tc.store.Delete(t.Context(), key))
		}
	}
	_, left, err := collect(beforeList(tc.store, gone+"/", steal), minutes)
	must(t, err)
	if n := tc.results(gone); len(left) != 1 || !strings.Contains(left[0].Reason, "claim") || n != 6 {
		t.Errorf("without its claim: left %+v, %d results", left, n)
	}

	if _, _, err := collect(stopping(tc.store, 2), later); !errors.Is(err, errStopped) {
		t.Errorf("crash: %v", err)
	}
	collectGarbage := func(now func() time.Time) {
		t.Helper()
		_, err := (&gc.Cleaner{Store: tc.store, Board: tc.board, Now: now}).Collect(t.Context(), gc.Config{})
		must(t, err)
	}
	collectGarbage(time.Now)
	if n := len(claims(t, tc.store)); n != 1 {
		t.Errorf("%d claims after a crash", n)
	}
	tc.leadArchiving(time.Hour, unchanged)
	id := tc.submit("gone", 0)
	tc.work(id)
	if s := tc.await(id, "its end", func(s manifest.CampaignStatus) bool { return s.Campaign.Phase.Ended() }); s.Campaign.Phase != manifest.PhaseRejected {
		t.Errorf("%s: %s", s.Campaign.Phase, s.Campaign.Reason)
	}
	must(t, tc.board.Delete(context.WithoutCancel(t.Context()), manifest.KeyCampaignPrefix+id))
	collectGarbage(later)
	if left := claims(t, tc.store); len(left) > 0 {
		t.Errorf("claims %q", left)
	}
}
