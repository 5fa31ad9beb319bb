package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/ledger"
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
	must(t, err)
	p, err := prior.Open(prior.Bundled)
	must(t, err)
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
	must(t, err)
	var log bytes.Buffer
	newRunner := func() *runner {
		r := &runner{
			s: &Service{cfg: Config{Store: store, Now: time.Now}}, record: record{id: spec.ID(), log: slog.New(slog.NewTextHandler(&log, nil)), rec: &manifest.Campaign{Items: windows * rows}},
			ledger: ledger.New(),
		}
		r.windows.sound = -1
		r.openParts()
		return r
	}
	written := newRunner()
	var positions []shard.Position
	var counts []manifest.Counts
	for w, err := range sharder.Windows(t.Context(), shard.Position{}) {
		must(t, err)
		if w.Number == 3 {
			w.Changed = change
		}
		data, _, err := w.Encode()
		must(t, err)
		must(t, store.Put(t.Context(), shard.Key(spec.ID(), w.Number), data))
		written.addWindow(w)
		written.parts.NoteWindow(w, int64(len(data)))
		positions, counts = append(positions, written.windows.next), append(counts, written.ledger.Total(0, false))
	}
	must(t, written.parts.Fold(t.Context(), 0, false))
	if _, n := written.parts.Waiting(); len(positions) != windows || n != windows%ledger.FoldWindows {
		t.Fatalf("%d windows, %d of them in no part", len(positions), n)
	}
	check := func(name string, stored, noted int) {
		t.Helper()
		r := newRunner()
		must(t, r.restoreWindows(t.Context()))
		if r.windows.stored != stored || r.windows.next != positions[stored-1] || r.windows.complete != (stored == windows) || r.windows.sound != sound || r.windows.warning != change {
			t.Errorf("%s: %d windows, complete %t, first sound window %d, warning %q, position %+v",
				name, r.windows.stored, r.windows.complete, r.windows.sound, r.windows.warning, r.windows.next)
		}
		if got := r.ledger.Total(0, false); got != counts[stored-1] || got.Failed < stored*rows/7 {
			t.Errorf("%s: counts %+v, want %+v", name, got, counts[stored-1])
		}
		if _, n := r.parts.Waiting(); n != noted {
			t.Errorf("%s: %d windows are in no part, want %d", name, n, noted)
		}
	}
	check("all windows", windows, windows%ledger.FoldWindows)
	for left := windows - 1; left >= windows-3; left-- {
		must(t, store.Delete(t.Context(), shard.Key(spec.ID(), left)))
		check(fmt.Sprintf("%d windows", left), left, max(0, left-windows/ledger.FoldWindows*ledger.FoldWindows))
	}
	if log.Len() > 0 {
		t.Errorf("log %s", log.String())
	}
	must(t, store.Put(t.Context(), "campaigns/"+spec.ID()+"/ledger/windows-00000000-00000015", []byte("damaged")))
	check("a part is damaged", windows-3, ledger.FoldWindows)
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "windows-00000000-00000015") {
		t.Errorf("log %s", log.String())
	}
	must(t, store.Delete(t.Context(), shard.Key(spec.ID(), 20)))
	if err := newRunner().restoreWindows(t.Context()); err == nil || !strings.Contains(err.Error(), "stored window 20 does not follow the previous window") {
		t.Errorf("a gap: error %v", err)
	}
}
