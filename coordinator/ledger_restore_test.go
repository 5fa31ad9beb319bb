package coordinator

import (
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
	const windows, rows = 50, 40
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
					if i < rows || i%7 == 0 { // the first window has no sound item
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
	newRunner := func() *runner {
		return &runner{
			id: spec.ID(), s: &Service{cfg: Config{Store: store}}, log: slog.New(slog.DiscardHandler), ledger: newLedger(),
			rec: &manifest.Campaign{Items: windows * rows}, sound: -1,
		}
	}
	written := newRunner()
	var positions []shard.Position
	var counts []manifest.Counts
	for w, err := range sharder.Windows(t.Context(), shard.Position{}) {
		must(err)
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
		if r.stored != stored || r.next != positions[stored-1] || r.complete != (stored == windows) || r.sound != 1 {
			t.Errorf("%s: %d windows, complete %t, first sound window %d, position %+v", name, r.stored, r.complete, r.sound, r.next)
		}
		if got := r.ledger.total(0, false); got != counts[stored-1] || got.Failed < stored*rows/7 {
			t.Errorf("%s: counts %+v, want %+v", name, got, counts[stored-1])
		}
		if n := len(r.checkpoint.windows); n != noted {
			t.Errorf("%s: %d windows are in no part, want %d", name, n, noted)
		}
	}
	check("all windows", windows, windows%foldWindows)
	must(store.Delete(t.Context(), windowPartKey(spec.ID(), 16, 31)))
	check("a part is lost", windows, windows%foldWindows+foldWindows)
	must(store.Delete(t.Context(), shard.Key(spec.ID(), windows-1)))
	check("the last window is lost", windows-1, windows%foldWindows+foldWindows-1)
	must(store.Delete(t.Context(), shard.Key(spec.ID(), 20)))
	if err := newRunner().restoreWindows(t.Context()); err == nil || !strings.Contains(err.Error(), "stored window 20 does not follow the previous window") {
		t.Errorf("a gap: error %v", err)
	}
}
