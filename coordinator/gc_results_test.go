package coordinator_test

import (
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
			collect := func(now func() time.Time, board *queue.Board, dry bool) []gc.Removal {
				t.Helper()
				cleaner := &gc.Cleaner{Store: store, Board: board, DryRun: dry, Now: now}
				removed, err := cleaner.CollectResults(t.Context(), 99*time.Hour)
				must(t, err)
				return removed
			}
			if removed := collect(time.Now, tc.board, false); len(removed) > 0 {
				t.Errorf("young results: %+v", removed)
			}
			planned := collect(later, tc.board, true)
			withoutBoard := collect(later, nil, true)
			if now := keysOf(t, store, ""); !slices.Equal(now, before) {
				t.Fatalf("a dry run changes %q to %q", before, now)
			}
			removed := collect(later, tc.board, false)
			if !slices.Equal(planned, removed) || !slices.Equal(withoutBoard, removed) || len(removed) != 1 {
				t.Fatalf("planned %+v, without board %+v, removed %+v", planned, withoutBoard, removed)
			}
			if r := removed[0]; r.Kind != "results" || r.Name != gone || r.Items != 7 || r.Objects != len(of) || r.Bytes < 10 {
				t.Errorf("removed %+v, the folder had %q", r, of)
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

// TestSubmitDuringCollectionOfResults submits the campaign of a folder again after the store was listed. The output is left,
// with the board alone and with the index alone.
func TestSubmitDuringCollectionOfResults(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 3)
	gone := tc.orphaned(tc.spec("gone"))
	before := keysOf(t, tc.store, gone+"/items/")
	collect := func(store storage.Store, b *queue.Board) ([]gc.Removal, error) {
		t.Helper()
		return (&gc.Cleaner{Store: store, Board: b, Now: later}).CollectResults(t.Context(), time.Hour)
	}
	want := "campaign " + gone + " began to use the output"
	begin := sync.OnceFunc(func() { tc.submit("gone", 0) })
	if removed, err := collect(beforeList(tc.store, gone+"/", begin), tc.board); len(removed) > 0 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a queued campaign: removed %+v, %v", removed, err)
	}
	must(t, tc.board.Delete(t.Context(), manifest.KeyCampaignPrefix+gone))
	tc.leadArchiving(time.Hour, unchanged)
	finish := sync.OnceFunc(func() { tc.finish(tc.spec("gone"), "") })
	if removed, err := collect(beforeList(tc.store, gone+"/", finish), nil); len(removed) > 0 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a finished campaign: removed %+v, %v", removed, err)
	}
	if now := keysOf(t, tc.store, gone+"/items/"); !slices.Equal(now, before) {
		t.Errorf("results %q, before %q", now, before)
	}
	if removed, err := collect(tc.store, tc.board); len(removed) > 0 || err != nil {
		t.Errorf("the output of the campaign: %+v, %v", removed, err)
	}
}
