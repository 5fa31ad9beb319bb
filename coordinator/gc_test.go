package coordinator_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

func TestCollect(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	put := func(key string) {
		t.Helper()
		must(t, tc.store.Put(t.Context(), key, []byte("12345")))
	}
	result := resultKeys(t, tc.store)[0]
	restored := strings.Split(result, "/")[2]
	put(shared + "/checkpoints/" + restored)
	put(shared + "/checkpoints/" + strings.Repeat("0", 64))
	put(shared + "/probes/ONE")
	put("campaigns/gone-12345678/shards/00000000.jsonl.gz")
	put("campaigns/gone-12345678/rounds/000001.json.gz")
	put("campaigns/young-12345678/campaign.json") // a record that the index does not have yet
	put("campaigns/.index/" + part + ".000000.open.0")
	kept := keysOf(t, tc.store, "")

	collect := func(later time.Duration, dry bool, cfg gc.Config) []api.Removal {
		t.Helper()
		cleaner := &gc.Cleaner{
			Store: tc.store, DryRun: dry, Now: func() time.Time { return time.Now().Add(later) },
		}
		removed, err := cleaner.Collect(t.Context(), cfg)
		must(t, err)
		return removed
	}
	index := collect(0, true, gc.Config{})
	if len(index) != 1 || index[0].Kind != "index" {
		t.Errorf("young garbage: %+v", index)
	}
	planned := collect(25*time.Hour, true, gc.Config{})
	if now := keysOf(t, tc.store, ""); !slices.Equal(now, kept) {
		t.Fatalf("a dry run changes %q to %q", kept, now)
	}
	removed := collect(25*time.Hour, false, gc.Config{})
	if !slices.Equal(planned, removed) {
		t.Errorf("planned %+v, removed %+v", planned, removed)
	}
	kinds := map[string]int{}
	for _, r := range removed {
		kinds[r.Kind] += r.Objects
	}
	// Both campaigns have finished, so no checkpoint is needed. Each has an open entry below its archived entry.
	if kinds["checkpoints"] != 2 || kinds["probes"] != 1 || kinds["windows"] != 2 || kinds["index"] < 2 || len(kinds) != 4 {
		t.Errorf("removed %+v", removed)
	}
	if again := collect(25*time.Hour, false, gc.Config{}); len(again) > 0 {
		t.Errorf("a second collection removes %+v", again)
	}
	if len(resultKeys(t, tc.store)) != 6 || len(keysOf(t, tc.store, "young")) != 1 {
		t.Errorf("left: %q", keysOf(t, tc.store, ""))
	}

	// Retention.
	if kept := collect(25*time.Hour, false, gc.Config{Keep: 48 * time.Hour, Results: true}); len(kept) > 0 {
		t.Errorf("removed within the retention time: %+v", kept)
	}
	collect(49*time.Hour, false, gc.Config{Keep: 48 * time.Hour, Results: true})
	if keys := append(keysOf(t, tc.store, all), keysOf(t, tc.store, part)...); len(keys) > 0 || len(resultKeys(t, tc.store)) > 0 {
		t.Errorf("left after the retention time: %q", keysOf(t, tc.store, ""))
	}
}

// TestCollectAndDeleteKeepNestedOutput puts outputs into each folder of another one whose files are collected, or deleted with its campaign, and
// in the place of the folder.
func TestCollectAndDeleteKeepNestedOutput(t *testing.T) {
	t.Parallel()
	tc, all, part := sharing(t, t.TempDir())
	item := item.Key(strings.Repeat("0", 64), item.FileResult)
	var nested []string
	for _, folder := range []string{"checkpoints", "probes", "logs/gone-12345678", "logs", "failures/" + all, "logs/" + part, "scores", "tuning", "sheets", "figures"} {
		for _, key := range []string{item, "figures/pairs_hdr.csv", "index.html"} {
			for _, inner := range []string{"/", "/inner/"} { // the folder itself may be an output
				nested = append(nested, shared+"/"+folder+inner+key)
				must(t, tc.store.Put(t.Context(), nested[len(nested)-1], []byte("12345")))
			}
		}
	}
	cleaner := &gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext, Now: later}
	_, err := cleaner.Collect(t.Context(), gc.Config{})
	must(t, err)
	_, err = cleaner.Delete(t.Context(), all, true)
	must(t, err)
	_, err = cleaner.Delete(t.Context(), part, true)
	must(t, err)
	slices.Sort(nested)
	if left := keysOf(t, tc.store, shared+"/"); !slices.Equal(left, nested) {
		t.Errorf("left %q, want %q", left, nested)
	}
}

// The checkpoints of a campaign that may be resumed are kept, except those of restored items.
func TestCollectKeepsCheckpointsOfOpenCampaigns(t *testing.T) {
	t.Parallel()
	tc, _, part := sharing(t, t.TempDir())
	stop := tc.leadArchiving(time.Hour, unchanged)
	must(t, tc.recall(part))
	stop()
	restored := strings.Split(resultKeys(t, tc.store)[0], "/")[2]
	open := shared + "/checkpoints/" + strings.Repeat("0", 64)
	must(t, tc.store.Put(t.Context(), shared+"/checkpoints/"+restored, nil))
	must(t, tc.store.Put(t.Context(), open, nil))
	cleaner := &gc.Cleaner{
		Store: tc.store, Now: func() time.Time { return time.Now().Add(1000 * time.Hour) },
	}
	_, err := cleaner.Collect(t.Context(), gc.Config{Keep: time.Hour, Results: false})
	must(t, err)
	if keys := keysOf(t, tc.store, "/checkpoints/"); !slices.Equal(keys, []string{open}) {
		t.Errorf("checkpoints %q", keys)
	}
	if s, err := board.Status(t.Context(), tc.board, part); err != nil || s.Campaign.Phase != record.PhaseFinished {
		t.Errorf("the open campaign: %+v, %v", s, err)
	}
	if keys := keysOf(t, tc.store, "campaigns/"+part+"/shards/"); len(keys) == 0 {
		t.Error("the open campaign has no windows")
	}
}

func TestCollectWithoutIndex(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	if _, err := (&gc.Cleaner{Store: tc.store}).Collect(t.Context(), gc.Config{}); !errors.Is(err, gc.ErrNoIndex) {
		t.Errorf("collect: %v", err)
	}
	if _, err := (&gc.Cleaner{Store: tc.store}).Delete(t.Context(), "any-12345678", false); !errors.Is(err, gc.ErrNoIndex) {
		t.Errorf("delete: %v", err)
	}
}

// beforeList is a store that calls act before it lists a prefix.
func beforeList(store storage.Store, prefix string, act func()) storage.Store {
	return &hookedStore{Store: store, before: func(call, key string) error {
		if call == "list" && key == prefix {
			act()
		}
		return nil
	}}
}

// TestCollectKeepsFolderThatIsUsedAgain submits a campaign with the id of garbage while the garbage is collected.
func TestCollectKeepsFolderThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tc, _, _ := sharing(t, dir)
	const folder = "campaigns/again-12345678/"
	old, young := folder+"shards/00000000.jsonl.gz", folder+"shards/00000001.jsonl.gz"
	must(t, tc.store.Put(t.Context(), old, []byte("old")))
	past := time.Now().Add(-25 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, old), past, past))
	store := beforeList(tc.store, folder, func() { must(t, tc.store.Put(t.Context(), young, []byte("young"))) })
	_, err := (&gc.Cleaner{Store: store}).Collect(t.Context(), gc.Config{})
	must(t, err)
	if keys := keysOf(t, tc.store, folder); !slices.Equal(keys, []string{young}) {
		t.Errorf("left: %q", keys)
	}
}
