package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// TestRestoredWindows stores 50 windows of 40 rows, most of them in parts of the ledger, and restores them in another
// runner: the dataset is read on at the same position, with the same items in the ledger.
func TestRestoredWindows(t *testing.T) {
	for _, sound := range []int{0, 1} {
		t.Run(fmt.Sprintf("the first sound window is %d", sound), func(t *testing.T) { testRestoredWindows(t, sound) })
	}
}

func testRestoredWindows(t *testing.T, sound int) {
	const windows, rows, change = 50, 40, "3 rows are new"
	store, err := storage.NewDir(t.TempDir())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	p, err := prior.Open(prior.Bundled)
	must(err)
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Tasks = "restored", "/data", []manifest.TaskSpec{{Name: "hdr"}}
	sharder, err := shard.New(shard.Config{
		Spec: spec, Prior: &p.Description, Sources: manifest.Files{}, Items: rows,
		Rows: func(context.Context, manifest.Dataset, func(string)) iter.Seq2[manifest.Row, error] {
			return func(yield func(manifest.Row, error) bool) {
				for i := range windows * rows {
					row := manifest.Row{
						Index: i, Name: fmt.Sprintf("r%04d", i), Image: fmt.Sprintf("/data/%04d.png", i), ImageSHA256: fmt.Sprintf("%064x", i), Width: 64, Height: 64,
					}
					if i < sound*rows || i%7 == 0 {
						row.Err = fmt.Errorf("row %d cannot be read", i)
					}
					if !yield(row, nil) {
						return
					}
				}
			}
		},
	})
	must(err)
	var log bytes.Buffer
	newRunner := func() *runner {
		return &runner{
			id: spec.ID(), s: &Service{cfg: Config{Store: store}}, log: slog.New(slog.NewTextHandler(&log, nil)), ledger: newLedger(),
			rec: &manifest.Campaign{Items: windows * rows}, sound: -1,
		}
	}
	written := newRunner()
	var positions []shard.Position
	var counts []manifest.Counts
	for w, err := range sharder.Windows(t.Context(), shard.Position{}) {
		must(err)
		if w.Number == 3 {
			w.Changed = change
		}
		data, _, err := w.Encode()
		must(err)
		must(store.Put(t.Context(), shard.Key(spec.ID(), w.Number), data))
		written.addWindow(w)
		written.noteWindow(w, int64(len(data)))
		positions, counts = append(positions, written.next), append(counts, written.ledger.total(0, false))
	}
	must(written.foldWindows(t.Context()))
	if n := len(written.checkpoint.windows); len(positions) != windows || n != windows%foldWindows {
		t.Fatalf("%d windows, %d of them in no part", len(positions), n)
	}
	check := func(name string, stored, noted int) {
		t.Helper()
		r := newRunner()
		must(r.restoreWindows(t.Context()))
		if r.stored != stored || r.next != positions[stored-1] || r.complete != (stored == windows) || r.sound != sound || r.warning != change {
			t.Errorf("%s: %d windows, complete %t, first sound window %d, warning %q, position %+v",
				name, r.stored, r.complete, r.sound, r.warning, r.next)
		}
		if got := r.ledger.total(0, false); got != counts[stored-1] || got.Failed < stored*rows/7 {
			t.Errorf("%s: counts %+v, want %+v", name, got, counts[stored-1])
		}
		if n := len(r.checkpoint.windows); n != noted {
			t.Errorf("%s: %d windows are in no part, want %d", name, n, noted)
		}
	}
	check("all windows", windows, windows%foldWindows)
	for left := windows - 1; left >= windows-3; left-- {
		must(store.Delete(t.Context(), shard.Key(spec.ID(), left)))
		check(fmt.Sprintf("%d windows", left), left, max(0, left-windows/foldWindows*foldWindows))
	}
	if log.Len() > 0 {
		t.Errorf("log %s", log.String())
	}
	must(store.Put(t.Context(), windowPartKey(spec.ID(), 0, 15), []byte("damaged")))
	check("a part is damaged", windows-3, foldWindows)
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "windows-00000000-00000015") {
		t.Errorf("log %s", log.String())
	}
	must(store.Delete(t.Context(), shard.Key(spec.ID(), 20)))
	if err := newRunner().restoreWindows(t.Context()); err == nil || !strings.Contains(err.Error(), "stored window 20 does not follow the previous window") {
		t.Errorf("a gap: error %v", err)
	}
}

// TestRestoredOutcomes enters the outcomes of parts of two leaders. The numbers are those of the part that is the newest
// of its stream.
func TestRestoredOutcomes(t *testing.T) {
	store, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{id: "c", s: &Service{cfg: Config{Store: store}}, log: slog.New(slog.DiscardHandler), ledger: newLedger()}
	for i := range 6 {
		r.ledger.add(id(i))
	}
	k := func(i int) identity { k, _ := parseIdentity(id(i)); return k }
	put := func(number int, stream int64, seq uint64, entries ...partEntry) {
		t.Helper()
		p := part{partHeader: partHeader{Campaign: "c", Stream: stream, Seq: seq}, entries: entries}
		data, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Put(t.Context(), outcomePartKey("c", number), data); err != nil {
			t.Fatal(err)
		}
	}
	check := func(next int, stream int64, seq uint64, states ...state) {
		t.Helper()
		if err := r.restoreOutcomes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := r.checkpoint; c.next != next || c.stream != stream || c.stored != seq || r.seen != seq {
			t.Errorf("next part %d, stream %d, stored %d, seen %d", c.next, c.stream, c.stored, r.seen)
		}
		for i, want := range states {
			if got := r.ledger.state(id(i)); got != want {
				t.Errorf("item %d is %v, want %v", i, got, want)
			}
		}
		r.checkpoint = checkpoint{}
	}
	check(0, 0, 0, pending)
	put(0, 7, 20, partEntry{id: k(0), state: done}, partEntry{id: k(1), state: failed, reason: "no image"})
	put(1, 7, 12, partEntry{id: k(2), state: dead}) // of a leader that knew less
	check(2, 7, 20, done, failed, dead, pending)
	put(4, 8, 5, partEntry{id: k(1), state: done}) // after the loss of the stream
	check(5, 8, 5, done, done, dead, pending)
	if got := r.ledger.reason(id(1)); got != "" {
		t.Errorf("a restored item has the reason %q", got)
	}
	if err := store.Put(t.Context(), outcomePartPrefix("c")+"odd", nil); err != nil {
		t.Fatal(err)
	}
	check(5, 8, 5, done, done, dead, pending)
}
