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
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/storage"
)

// later is a clock at which all objects are old.
func later() time.Time { return time.Now().Add(100 * time.Hour) }

func TestCollectPriors(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: make test-all")
	}
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("with-prior")
	spec.Prior = filepath.Join(t.TempDir(), "prior.onnx")
	used := "priors/" + tc.priorFile(spec.Prior, "used") + ".onnx"
	_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	stop := tc.leadArchiving(time.Hour, unchanged)
	tc.work(spec.ID(""))
	tc.awaitPhase(spec.ID(""), record.PhaseFinished)
	const unused, contested = "priors/unused.onnx", "priors/contested.onnx"
	must(t, tc.store.Put(t.Context(), unused, []byte("12345")))
	collect := func(store storage.Store, now func() time.Time, dry bool) (priors []api.Removal) {
		t.Helper()
		removed, err := (&gc.Cleaner{Store: store, DryRun: dry, Now: now}).Collect(t.Context(), gc.Config{})
		must(t, err)
		return slices.DeleteFunc(removed, func(r api.Removal) bool { return r.Kind != "priors" })
	}
	want := func(keys ...string) {
		t.Helper()
		if got := keysOf(t, tc.store, "priors/"); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
			t.Errorf("priors %q, want %q", got, keys)
		}
	}
	if young := collect(tc.store, time.Now, false); len(young) > 0 {
		t.Errorf("removed young priors: %+v", young)
	}
	collect(tc.store, later, false)
	want(used, unused) // a campaign is open
	must(t, tc.archive(spec.ID("")))
	stop()
	planned := collect(tc.store, later, true)
	want(used, unused)
	removed := collect(tc.store, later, false)
	if !slices.Equal(planned, removed) || len(removed) != 1 || removed[0].Objects != 1 || removed[0].Bytes != 5 {
		t.Errorf("planned %+v, removed %+v", planned, removed)
	}
	want(used)

	// A campaign begins to use a prior while it is deleted.
	must(t, tc.store.Put(t.Context(), contested, []byte("67890")))
	begun := index.Entry{ID: "begun-12345678", State: index.Open, Output: index.OutputDigest("begun")}
	store := &hookedStore{Store: tc.store, before: func(string, string) error { return nil }, after: func(call, key string) {
		if call == "delete" && key == contested {
			must(t, index.New(tc.store).Add(t.Context(), begun))
		}
	}}
	if got := collect(store, later, false); len(got) > 0 {
		t.Errorf("removed a prior in use: %+v", got)
	}
	want(used, contested)
	if data, err := tc.store.Get(t.Context(), contested); err != nil || string(data) != "67890" {
		t.Errorf("the prior in use: %q, %v", data, err)
	}

	// The archived campaign uses it as an operator file, then no more.
	must(t, tc.store.Delete(t.Context(), begun.Key()))
	for _, keys := range [][]string{{used, contested}, {used}} {
		_, err := recordtest.Update(t.Context(), tc.board, tc.store, spec.ID(""), func(c *record.Campaign) error {
			c.Operators = []record.OperatorFile{{Path: "/a.onnx", SHA256: "2", Key: keys[len(keys)-1]}}
			return nil
		})
		must(t, err)
		collect(tc.store, later, false)
		want(keys...)
	}
}

// Logs of campaigns without a record are garbage, those of others are not; the empty folder of probes is removed.
func TestCollectLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tc, all, part := sharing(t, dir)
	attempt := strings.Repeat("0", 64) + ".1.b.json"
	gone, kept := shared+"/"+record.LogPrefix("gone-12345678", attempt), shared+"/"+record.LogPrefix(part, attempt)
	for _, key := range []string{gone, kept, shared + "/probes/ONE"} {
		must(t, tc.store.Put(t.Context(), key, []byte("12345")))
	}
	must(t, tc.store.Delete(t.Context(), shared+"/probes/ONE")) // as a worker does
	collect := func(now func() time.Time) {
		t.Helper()
		_, err := (&gc.Cleaner{Store: tc.store, Now: now}).Collect(t.Context(), gc.Config{})
		must(t, err)
	}
	collect(time.Now)
	if keys := keysOf(t, tc.store, "/logs/"); !slices.Equal(keys, slices.Sorted(slices.Values([]string{gone, kept}))) {
		t.Errorf("young logs: %q", keys)
	}
	collect(later)
	if keys := keysOf(t, tc.store, "/logs/"); !slices.Equal(keys, []string{kept}) {
		t.Errorf("logs: %q", keys)
	}
	if _, err := os.Stat(filepath.Join(dir, shared, "probes")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of probes: %v", err)
	}
	// A deletion includes the logs of its campaign, and with the last results also their scores and tuning records.
	for _, key := range []string{"scores/ssim@1/a.jsonl", "tuning/a.json"} {
		must(t, tc.store.Put(t.Context(), shared+"/"+key, []byte("12345")))
	}
	cleaner := &gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}
	_, err := cleaner.Delete(t.Context(), all, true)
	must(t, err)
	if keys := keysOf(t, tc.store, shared+"/scores/"); len(keys) != 1 {
		t.Errorf("scores beside the other campaign: %q", keys)
	}
	_, err = cleaner.Delete(t.Context(), part, true)
	must(t, err)
	if keys := keysOf(t, tc.store, shared+"/"); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
}
