package gc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

var id, must = boardtest.ID, boardtest.Must

// storeWith returns a store with empty objects, and the time at which the last one was written.
func storeWith(t *testing.T, keys ...string) (s *storage.Dir, written time.Time) {
	t.Helper()
	s, err := storage.NewDir(t.TempDir())
	must(t, err)
	for _, key := range keys {
		must(t, s.Put(t.Context(), key, []byte("12345")))
		info, err := s.Stat(t.Context(), key)
		must(t, err)
		if info.Modified.After(written) {
			written = info.Modified
		}
	}
	return s, written
}

// keysOf lists a store.
func keysOf(t *testing.T, s storage.Store, prefix string) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), prefix) {
		must(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// Checkpoints are deleted from one hour on if their item has its result, or all items are settled; probes after a day.
func TestCollectedOutput(t *testing.T) {
	t.Parallel()
	restored, open := "checkpoints/"+id(0)+".npy", "checkpoints/"+id(1)+".npy"
	result, probe := item.Key(id(0), item.FileResult), "probes/A"
	for _, c := range []struct {
		age      time.Duration
		finished bool
		want     []string
	}{
		{checkpointAge - time.Second, true, []string{restored, open, probe}},
		{checkpointAge, false, []string{open, probe}},
		{checkpointAge, true, []string{probe}},
		{probeAge - time.Second, true, []string{probe}},
		{probeAge, false, []string{open}},
		{probeAge, true, nil},
	} {
		for _, dry := range []bool{true, false} {
			s, written := storeWith(t, restored, open, result, probe)
			cleaner := &Cleaner{Store: s, DryRun: dry, Now: func() time.Time { return written.Add(c.age) }}
			removed, err := cleaner.collectOutput(t.Context(), s, "out", c.finished)
			must(t, err)
			n := 0
			for _, r := range removed {
				n += r.Objects
				if r.Name != "out" || r.Bytes != int64(5*r.Objects) || r.Objects == 0 {
					t.Errorf("removal %+v", r)
				}
			}
			if n != 3-len(c.want) {
				t.Errorf("age %v, finished %t: %d objects removed", c.age, c.finished, n)
			}
			got := append(keysOf(t, s, "checkpoints/"), keysOf(t, s, "probes/")...)
			want := slices.Concat(c.want)
			if dry {
				want = []string{restored, open, probe}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(keysOf(t, s, "items/")) != 1 {
				t.Errorf("age %v, finished %t, dry %t: left %q, want %q", c.age, c.finished, dry, got, want)
			}
		}
	}
}

// A staged file that the result of its item names stays: it is the only copy until it has replaced the file of a lost attempt. One that came second
// goes, and with the results all go.
func TestStagedFilesStay(t *testing.T) {
	t.Parallel()
	named, second := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for _, c := range []struct {
		name  string
		left  int
		clean func(c *Cleaner, d *deletion) error
	}{
		{"collect", 1, func(c *Cleaner, _ *deletion) error {
			_, err := c.collectOutput(t.Context(), c.Store, "out", false)
			return err
		}},
		{"collect all", 1, func(c *Cleaner, _ *deletion) error {
			_, err := c.collectOutput(t.Context(), c.Store, "out", true)
			return err
		}},
		{"delete", 1, func(_ *Cleaner, d *deletion) error { _, err := d.run(t.Context()); return err }},
		{"delete results", 0, func(_ *Cleaner, d *deletion) error { d.results = true; _, err := d.run(t.Context()); return err }},
	} {
		s, _ := storeWith(t)
		part, err := storage.NewPrefixed(s, "out")
		must(t, err)
		res := item.Result{Schema: item.SchemaVersion, Item: item.Item{ID: id(0)}, Replaces: []string{item.FileTrace}, Artifacts: map[string]string{item.FileTrace: named, item.FileTruth: second}}
		data, err := item.EncodeResult(&res)
		must(t, err)
		must(t, part.Put(t.Context(), item.Key(id(0), item.FileResult), data))
		for _, digest := range []string{named, second} {
			must(t, part.Put(t.Context(), item.StagedKey(id(0), digest), nil))
		}
		k, _ := item.ParseIdentity(id(0))
		now := func() time.Time { return time.Now().Add(2 * checkpointAge) }
		d := &deletion{Cleaner: &Cleaner{Store: s, Now: now}, id: "c", record: &record.Campaign{ID: "c", Output: "out"}, own: map[item.Identity]bool{k: true}}
		must(t, c.clean(&Cleaner{Store: part, Now: now}, d))
		if got := keysOf(t, part, item.CheckpointsFolder); len(got) != c.left || c.left > 0 && got[0] != item.StagedKey(id(0), named) {
			t.Errorf("%s: left %q", c.name, got)
		}
	}
}

// Folders of unknown campaigns are deleted after a day; one young object keeps the folder, as a record does.
func TestCollectedFolders(t *testing.T) {
	t.Parallel()
	const window = "/shards/00000000.jsonl.gz"
	keys := []string{
		"campaigns/a" + window, "campaigns/b" + window, board.StoredKey("b"), "campaigns/d" + window,
		"campaigns/e/ledger/outcomes-00000000", index.Prefix + "x.000000.open.y",
	}
	for age, want := range map[time.Duration]int{folderAge - time.Second: 0, folderAge: 2} {
		s, written := storeWith(t, keys...)
		cleaner := &Cleaner{Store: s, Now: func() time.Time { return written.Add(age) }}
		removed, err := cleaner.collectFolders(t.Context(), map[string]index.Entry{"d": {ID: "d"}})
		if err != nil || len(removed) != want || len(keysOf(t, s, "campaigns/")) != len(keys)-want {
			t.Errorf("age %v: %+v, %v, left %q", age, removed, err, keysOf(t, s, "campaigns/"))
		}
		for i, r := range removed {
			if r.Kind != "windows" || r.Name != []string{"a", "e"}[i] || r.Objects != 1 {
				t.Errorf("removal %+v", r)
			}
		}
	}
}

// Of the index, the newest entry stays, and the mark of a deletion for 90 days.
func TestSupersededEntries(t *testing.T) {
	t.Parallel()
	entry := func(number int, state index.State) string {
		e := index.Entry{ID: "c", Number: number, State: state, Output: "o"}
		if state == index.Archived {
			e.Row = index.Row{Phase: record.PhaseFinished, Priority: record.PriorityLow}
		}
		return e.Key()
	}
	keep := []string{entry(6, index.Open), "campaigns/c/campaign.json"}
	mark := (&record.Campaign{ID: "c", Submitted: time.Unix(1e9, 0)}).Tombstone()
	drop := []string{entry(5, index.Archived), entry(4, index.Archived), entry(3, index.Open), entry(5, index.Open)}
	s, written := storeWith(t, slices.Concat(keep, drop, []string{mark})...)
	newest, err := index.New(s).All(t.Context())
	must(t, err)
	for _, step := range []struct {
		age  time.Duration
		drop int
		keep []string
	}{{buriedAge - time.Hour, len(drop), append(slices.Clone(keep), mark)}, {buriedAge, 1, keep}} {
		cleaner := &Cleaner{Store: s, Now: func() time.Time { return written.Add(step.age) }}
		r, err := cleaner.remove(t.Context(), "index", "superseded", cleaner.superseded(t.Context(), newest), nil)
		got := keysOf(t, s, "campaigns/")
		slices.Sort(step.keep)
		slices.Sort(got)
		if err != nil || r.Objects != step.drop || !slices.Equal(got, step.keep) {
			t.Errorf("%+v, %v, left %q, want %q", r, err, got, step.keep)
		}
	}
}

// A deletion looks for new campaigns of the output before its first object, and again after each thousand.
func TestRemoveChecks(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1: 1, checkEvery: 1, checkEvery + 1: 2} {
		for _, dry := range []bool{false, true} {
			s, _ := storeWith(t)
			checks := 0
			cleaner := &Cleaner{Store: s, DryRun: dry}
			r, err := cleaner.remove(t.Context(), "results", "out", func(yield func(storage.Info, error) bool) {
				for i := range n {
					if !yield(storage.Info{Key: fmt.Sprint("items/", i), Size: 2}, nil) {
						return
					}
				}
			}, func() error { checks++; return nil })
			if dry {
				want = 0
			}
			if err != nil || checks != want || r.Objects != n || r.Bytes != int64(2*n) {
				t.Errorf("%d objects, dry %t: %d checks, %+v, %v", n, dry, checks, r, err)
			}
		}
	}
}
