package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/storage"
)

// storeWith returns a store with empty objects, and the time at which the last one was written.
func storeWith(t *testing.T, keys ...string) (s *storage.Dir, written time.Time) {
	t.Helper()
	s, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := s.Put(t.Context(), key, []byte("12345")); err != nil {
			t.Fatal(err)
		}
		info, err := s.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// Checkpoints are deleted from one hour on if their item has its result, or all items are settled; probes after a day.
func TestCollectedOutput(t *testing.T) {
	t.Parallel()
	restored, open := "checkpoints/"+id(0)+".npy", "checkpoints/"+id(1)+".npy"
	result, probe := manifest.ItemKey(id(0), manifest.FileResult), "probes/A"
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
			if err != nil {
				t.Fatal(err)
			}
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

// Folders of unknown campaigns are deleted after a day; one young object keeps the folder, as a record or an archive does.
func TestCollectedFolders(t *testing.T) {
	t.Parallel()
	const window = "/shards/00000000.jsonl.gz"
	keys := []string{
		"campaigns/a" + window, "campaigns/b" + window, board.StoredKey("b"), "campaigns/c" + window, archiveKey("c", 1), "campaigns/d" + window,
		"campaigns/e/ledger/outcomes-00000000", indexPrefix + "x.000000.open.y",
	}
	for age, want := range map[time.Duration]int{folderAge - time.Second: 0, folderAge: 2} {
		s, written := storeWith(t, keys...)
		cleaner := &Cleaner{Store: s, Now: func() time.Time { return written.Add(age) }}
		removed, err := cleaner.collectFolders(t.Context(), map[string]indexEntry{"d": {id: "d"}})
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

// Of the index, the newest entry and the archive before it stay.
func TestSupersededEntries(t *testing.T) {
	t.Parallel()
	entry := func(number int, state indexState) string {
		e := indexEntry{id: "c", number: number, state: state, output: "o"}
		if state == indexArchived {
			e.row = archivedRow{Phase: manifest.PhaseFinished, Priority: manifest.PriorityLow}
		}
		return e.key()
	}
	keep := []string{entry(5, indexArchived), entry(6, indexOpen), archiveKey("c", 5), archiveKey("c", 6), "campaigns/c/campaign.json"}
	drop := []string{entry(4, indexArchived), entry(3, indexOpen), entry(5, indexOpen), archiveKey("c", 4), archiveKey("c", 1)}
	s, _ := storeWith(t, slices.Concat(keep, drop)...)
	newest, err := index{s}.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cleaner := &Cleaner{Store: s}
	r, err := cleaner.remove(t.Context(), "index", "superseded", cleaner.superseded(t.Context(), newest), nil)
	got := keysOf(t, s, "campaigns/")
	slices.Sort(keep)
	slices.Sort(got)
	if err != nil || r.Objects != len(drop) || !slices.Equal(got, keep) {
		t.Errorf("%+v, %v, left %q, want %q", r, err, got, keep)
	}
	for e, want := range map[string]int{"c": 5, "d": 0} {
		if number, err := (index{s}).archive(t.Context(), e); err != nil || number != want {
			t.Errorf("campaign %s: archive %d, %v, want %d", e, number, err, want)
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

// Consecutive removals of one kind and name are one.
func TestMergedRemovals(t *testing.T) {
	t.Parallel()
	of := func(kind, name string, n int) Removal {
		return Removal{Kind: kind, Name: name, Objects: n, Bytes: int64(10 * n)}
	}
	got := merged([]Removal{of("results", "o", 1), of("results", "o", 2), of("report", "o", 3), of("report", "p", 4), of("results", "p", 5)})
	want := []Removal{of("results", "o", 3), of("report", "o", 3), of("report", "p", 4), of("results", "p", 5)}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// A list has the archived campaigns after a campaign, in pages.
func TestArchivedPages(t *testing.T) {
	t.Parallel()
	s, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := index{s}
	row := archivedRow{Phase: manifest.PhaseFinished, Priority: manifest.PriorityLow, Weight: 3}
	for i, state := range []indexState{indexArchived, indexOpen, indexArchived, indexDeleting, indexArchived} {
		e := indexEntry{id: fmt.Sprint("c", i), number: 1, state: state, output: "o"}
		if state == indexArchived {
			e.row = row
		}
		if err := x.add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	a := &archiver{x: x}
	for after, want := range map[string]string{"": "c0 c2 c4", "c0": "c2 c4", "c1": "c2 c4", "c4": ""} {
		r := &manifest.Request{After: after}
		if err := a.list(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		rows, err := decodeList(r.List)
		var ids []string
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		if err != nil || r.More || strings.Join(ids, " ") != want {
			t.Errorf("after %q: %q, more %t, %v", after, ids, r.More, err)
		}
	}
}

// An ended entry becomes open with the next number; an open one stays; a deletion refuses.
func TestIndexOpen(t *testing.T) {
	t.Parallel()
	c := &manifest.Campaign{ID: "c", Output: "o"}
	s, _ := storeWith(t)
	x := index{s}
	for number := range 2 {
		for range 2 {
			if err := x.open(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			e, err := x.of(t.Context(), "c")
			if err != nil || e.number != 2*number || e.state != indexOpen || e.output != outputDigest("o") {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
		row := archivedRow{Phase: manifest.PhaseFinished, Priority: manifest.PriorityLow}
		if err := x.add(t.Context(), indexEntry{id: "c", number: 2*number + 1, state: indexArchived, output: "o", row: row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.add(t.Context(), indexEntry{id: "c", number: 4, state: indexDeleting, output: "o"}); err != nil {
		t.Fatal(err)
	}
	if err := x.open(t.Context(), c); err != errDeleting { //nolint:errorlint // exactly this one
		t.Errorf("error %v", err)
	}
}

// TestResultFolders: an output without a campaign is old from the age of its newest object on. Its items are counted once each.
func TestResultFolders(t *testing.T) {
	t.Parallel()
	const name, age = "gone-12345678", 48 * time.Hour
	s, written := storeWith(t, "photos/a.png", "top-level",
		name+"/"+manifest.ItemKey(id(0), manifest.FileResult), name+"/"+manifest.ItemKey(id(0), manifest.FileTrace),
		name+"/"+manifest.ItemKey(id(1), manifest.FileRestored), name+"/results.csv")
	for later, want := range map[time.Duration]int{age - 1: 0, age: 1, age + 1: 1} {
		cleaner := &Cleaner{Store: s, Now: func() time.Time { return written.Add(later) }}
		folders, err := cleaner.resultFolders(t.Context(), age)
		if err != nil || len(folders) != want {
			t.Fatalf("after %v: %d folders, %v", later, len(folders), err)
		}
		for _, f := range folders {
			if f.name != name || f.items != 2 || f.objects != 4 || f.bytes != 20 || !f.newest.Equal(written) || f.obstacle() != "" {
				t.Errorf("%+v", f)
			}
			// The second listing, after the claim, has the same limit.
			for later, reason := range map[time.Duration]string{age - 1: "the output is left: it has new objects", age: ""} {
				o := &orphan{Cleaner: &Cleaner{Store: s, Now: func() time.Time { return written.Add(later) }}, resultFolder: f, x: index{s}, age: age}
				o.claim = indexEntry{id: name + claimMark + "a", state: indexDeleting, output: outputDigest(name)}
				if err := o.x.add(t.Context(), o.claim); err != nil {
					t.Fatal(err)
				}
				if err := o.examine(t.Context()); (err == nil) != (reason == "") || err != nil && err.Error() != reason {
					t.Errorf("after %v: %v, want %q", later, err, reason)
				}
			}
		}
	}
}

// TestRenewedClaim: a deletion renews its claim from one minute on, and ends without it.
func TestRenewedClaim(t *testing.T) {
	t.Parallel()
	s, begin := storeWith(t, "gone-12345678/a", "gone-12345678/b", "gone-12345678/c", "gone-12345678/d")
	for step, want := range map[time.Duration]int{confirmEvery - 1: 2, confirmEvery: 1, confirmEvery / 3: 3} {
		now := begin
		o := &orphan{Cleaner: &Cleaner{Store: s, Now: func() time.Time { now = now.Add(step); return now }}, resultFolder: &resultFolder{name: "gone-12345678"}, x: index{s}}
		o.confirmed = begin
		var err error
		n := 0
		for _, e := range o.each(t.Context(), func(string) bool { return true }) {
			if err = e; err == nil {
				n++
			}
		}
		var inUse inUseError
		if n != want-1 || !errors.As(err, &inUse) { // there is no claim
			t.Errorf("with %v between objects: %d objects, %v", step, n, err)
		}
	}
}
