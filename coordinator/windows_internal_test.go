package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// windowOf returns a window of n items of a campaign.
func windowOf(r *runner, number, first, n int) *shard.Window {
	w := &shard.Window{Header: shard.Header{Schema: record.Schema, Campaign: r.id, Number: number, Item: first, Items: n, Row: first, Rows: n}}
	w.Items = items(first, n)
	return w
}

// putWindow stores a window, as the leader before did.
func putWindow(t *testing.T, r *runner, w *shard.Window) {
	t.Helper()
	data, err := w.Encode()
	must(t, err)
	must(t, r.s.cfg.Store.Put(t.Context(), shard.Key(r.id, w.Number), data))
}

// workIn leases all items of a runner's queue, and returns their ids.
func workIn(t *testing.T, r *runner) map[string]*queue.Lease {
	t.Helper()
	out := map[string]*queue.Lease{}
	for deadline := time.Now().Add(10 * time.Second); ; {
		leases, err := r.queue.Lease(t.Context(), 100, 0)
		must(t, err)
		for _, l := range leases {
			out[l.ID()] = l
		}
		if len(leases) > 0 {
			continue
		}
		// A consumer learns of a published item a little later than the stream.
		size, err := r.queue.Size(t.Context())
		must(t, err)
		pending, leased, err := r.queue.Depth(t.Context())
		must(t, err)
		if pending == 0 && leased == size || time.Now().After(deadline) {
			return out
		}
	}
}

// A new window enters the ledger, and is published if the campaign is released. Of a window that another leader has stored,
// the stored one counts.
func TestStoreWindow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, tt := range []struct {
		name     string
		released bool
		there    bool // another leader has stored a window of as many items
		items    int
		expected int
	}{
		{"new", false, false, 3, 0},
		{"new, released", true, false, 3, 3},
		{"stored by another leader", false, true, 0, 0},
		{"stored by another leader, released", true, true, 2, 2},
	} {
		var log strings.Builder
		r := decidingRunner(t, &now, &log).onBoard(t)
		must(t, r.save(t.Context(), func(c *record.Campaign) { c.Released, c.Phase = tt.released, record.PhaseRunning }))
		if tt.there {
			putWindow(t, r, windowOf(r, 0, 0, tt.items))
		}
		if err := r.storeWindow(t.Context(), shardedWindow{window: windowOf(r, 0, 0, 3)}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if r.outcomes.ledger.Items() != tt.items || r.windows.stored != 1 || r.windows.next.Item != tt.items {
			t.Errorf("%s: %d items in %d windows, the next item is %d", tt.name, r.outcomes.ledger.Items(), r.windows.stored, r.windows.next.Item)
		}
		if got := workIn(t, r); len(got) != tt.expected {
			t.Errorf("%s: %d published items", tt.name, len(got))
		}
	}
}

// A stored window that does not follow the previous one is an error. An error of the dataset rejects the campaign.
func TestStoreWindowThatDoesNotFollow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, change := range map[string]func(w *shard.Window){
		"campaign": func(w *shard.Window) { w.Campaign = "other-12345678" },
		"number":   func(w *shard.Window) { w.Number = 1 },
		"item": func(w *shard.Window) {
			w.Item = 1
			for i := range w.Items {
				w.Items[i].Index++
			}
		},
	} {
		r := decidingRunner(t, &now, &strings.Builder{})
		other := windowOf(r, 0, 0, 2)
		change(other)
		data, err := other.Encode()
		must(t, err)
		must(t, r.s.cfg.Store.Put(t.Context(), shard.Key(r.id, 0), data))
		_, err = r.windows.create(t.Context(), windowOf(r, 0, 0, 2))
		if err == nil || !strings.Contains(err.Error(), "stored window 0 does not follow the previous window") || r.windows.stored != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := decidingRunner(t, &now, &strings.Builder{})
	var rejected rejection
	if err := r.storeWindow(t.Context(), shardedWindow{err: storage.ErrUnavailable}); !errors.Is(err, storage.ErrUnavailable) || errors.As(err, &rejected) {
		t.Errorf("an outage: %v", err)
	}
	if err := r.storeWindow(t.Context(), shardedWindow{err: manifest.ErrEmptyDataset}); !errors.As(err, &rejected) {
		t.Errorf("an empty dataset: %v", err)
	}
}

// save drops a record that was offered before its own write, and keeps a later one.
func TestSaveAndOfferedRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, later := range []bool{false, true} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		offered := *r.rec
		if offered.Number = 1; later {
			offered.Number = 9
		}
		r.offer(&offered)
		must(t, r.save(t.Context(), func(c *record.Campaign) { c.Phase = record.PhasePreflight }))
		if (r.offered != nil) != later || r.newest.number != offered.Number || r.rec.Number != 1 {
			t.Errorf("later %t: offered %v, newest %+v, number %d", later, r.offered, r.newest, r.rec.Number)
		}
		stored, err := board.Load(t.Context(), r.s.cfg.Store, r.id)
		if err != nil || stored.Phase != record.PhasePreflight || r.rec.Phase != record.PhasePreflight {
			t.Errorf("the stored record is %+v, %v", stored, err)
		}
	}
}

// A save whose condition does not hold, or of another phase than the record's, adopts the record.
func TestSaveAdoptsRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	refuse := func(*record.Campaign) bool { return false }
	rename := func(c *record.Campaign) { c.Reason = "changed" }
	if err := r.saveIf(t.Context(), refuse, rename); err != nil || r.rec.Reason != "" {
		t.Errorf("a refused save: %+v, %v", r.rec, err)
	}
	_, err := recordtest.Update(t.Context(), r.s.cfg.Board, r.s.cfg.Store, r.id, func(c *record.Campaign) error {
		c.Phase = record.PhaseCanary
		return nil
	})
	must(t, err)
	if err := r.save(t.Context(), rename); err != nil || r.rec.Reason != "" || r.rec.Phase != record.PhaseCanary {
		t.Errorf("a save after another leader's: %+v, %v", r.rec, err)
	}
	r.rec.Prior, r.rec.Operators = record.PriorFile{SHA256: strings.Repeat("0", 64), Name: "p"}, []record.OperatorFile{{Path: "a.onnx"}}
	must(t, r.save(t.Context(), rename))
	c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
	if err != nil || c.Reason != "changed" || c.Prior.SHA256 != r.rec.Prior.SHA256 || len(c.Operators) != 1 {
		t.Errorf("saved %+v, %v", c, err)
	}
	// Fields that this leader does not know stay.
	r.rec.Prior, r.rec.Operators = record.PriorFile{}, nil
	must(t, r.save(t.Context(), func(c *record.Campaign) { c.Reason = "again" }))
	if c, err = board.Read(t.Context(), r.s.cfg.Board, r.id); err != nil || c.Reason != "again" || c.Prior.SHA256 == "" || len(c.Operators) != 1 {
		t.Errorf("saved %+v, %v", c, err)
	}
}

// A preflight has an item for each class, and then up to three of other images; each image is there once.
func TestPublishedPreflight(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	for _, tt := range []struct {
		classes, images int
		want            int
	}{{1, 1, 1}, {1, 4, 4}, {1, 9, 4}, {2, 9, 5}, {maxPreflight, 1, maxPreflight}, {maxPreflight + 1, 2, maxPreflight + 1}} {
		var all []item.Item
		for i := range tt.images {
			for k := range tt.classes {
				it := items(100*i+k, 1)[0]
				it.Name, it.Task, it.Width, it.Height = string(rune('a'+i)), string(rune('A'+k)), 8, 8
				all = append(all, it)
			}
		}
		must(t, r.publishPreflight(t.Context(), all))
		work := workIn(t, r)
		l := work[record.IDPreflight]
		if len(work) != 1 || l == nil {
			t.Fatalf("%d classes: %d items in the queue", tt.classes, len(work))
		}
		p, err := record.Decode[record.Preflight](l.Payload())
		if err != nil || p.Campaign != r.id || len(p.Items) != tt.want {
			t.Errorf("%d classes of %d images: %d items, %v", tt.classes, tt.images, len(p.Items), err)
		}
		must(t, l.Ack(t.Context()))
		r.rec.Round++ // the queue refuses a duplicate
	}
}

// The ledger is rebuilt from windows that follow each other; another window is an error that names the folder.
func TestRestoredLedger(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		change func(w *shard.Window) // of the last window
		follow bool
	}{
		"follows":          {func(*shard.Window) {}, true},
		"another campaign": {func(w *shard.Window) { w.Campaign = "other-12345678" }, false},
		"another number":   {func(w *shard.Window) { w.Number++ }, false},
		"another item": {func(w *shard.Window) {
			w.Item = 1
			for i := range w.Items {
				w.Items[i].Index = 1 + i
			}
		}, false},
	} {
		const before = 17 // more than are read at a time
		r := decidingRunner(t, &now, &strings.Builder{})
		for n := range before {
			putWindow(t, r, windowOf(r, n, 2*n, 2))
		}
		last := windowOf(r, before, 2*before, 2)
		last.Last, last.Changed = true, "3 rows are new"
		tt.change(last)
		data, err := last.Encode()
		must(t, err)
		must(t, r.s.cfg.Store.Put(t.Context(), shard.Key(r.id, before), data))
		r.outcomes.ledger = ledger.New()
		err = r.restoreLedger(t.Context())
		if (err == nil) != tt.follow || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("stored window %d does not follow the previous window; remove ", before)+shard.Prefix(r.id)) {
			t.Errorf("%s: %v", name, err)
		}
		const n = before + 1
		if tt.follow && (r.windows.stored != n || r.outcomes.ledger.Open() != 2*n || !r.windows.complete || r.windows.sound != 0 || r.windows.unverified != n || r.windows.warning != "3 rows are new" ||
			r.windows.next.Item != 2*n) {
			t.Errorf("%d windows, %d open items, the first with items is %d, warning %q", r.windows.stored, r.outcomes.ledger.Open(), r.windows.sound, r.windows.warning)
		}
	}
}
