package ledger

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// testParts are the parts of campaign "c" in an empty store, by the clock *now. purged has the calls of Purge.
func testParts(t *testing.T, now *time.Time, log *strings.Builder) (p *Parts, purged *[]uint64) {
	t.Helper()
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	purged = &[]uint64{}
	return NewParts(PartsConfig{
		Store: store, Campaign: "c", Fold: 4, Relief: time.Minute, Now: func() time.Time { return *now },
		Purge:  func(_ context.Context, through uint64) error { *purged = append(*purged, through); return nil },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}), purged
}

// An outcome enters the next part unless it is pending or unreadable.
func TestNoteOutcome(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now := begin
	p, _ := testParts(t, &now, &strings.Builder{})
	p.NoteOutcome("short", 0, Done, "", true)
	p.NoteOutcome(id(0), 0, Pending, "", true)
	if len(p.outcomes) != 0 || p.found || !p.since.IsZero() {
		t.Errorf("parts %+v", p)
	}
	p.NoteOutcome(id(0), 1, Failed, strings.Repeat("x", maxReason+1), false)
	now = now.Add(time.Minute)
	p.NoteOutcome(id(1), 2, Done, "", true)
	p.NoteOutcome(id(2), 2, Done, "", false)
	if n := len(p.outcomes); n != 3 || !p.found || !p.since.Equal(begin) {
		t.Errorf("%d outcomes since %v, found %t", n, p.since, p.found)
	}
	if o := p.outcomes[0]; o.state != Failed || o.round != 1 || len(o.reason) != maxReason {
		t.Errorf("outcome %+v", o)
	}
	var none *Parts
	none.NoteOutcome(id(3), 2, Done, "", false)
}

// TestFold has the conditions under which outcomes are stored.
func TestFold(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	for _, c := range []struct {
		name     string
		outcomes int
		found    bool
		age      time.Duration
		full     bool
		relieved time.Duration // before now; 0 for never
		want     bool
	}{
		{name: "few and young", outcomes: 3},
		{name: "enough", outcomes: 4, want: true},
		{name: "found", outcomes: 1, found: true, want: true},
		{name: "almost old", outcomes: 1, age: foldInterval - 1},
		{name: "old", outcomes: 1, age: foldInterval, want: true},
		{name: "none, after an hour", age: foldInterval},
		{name: "the stream is full", outcomes: 1, full: true, want: true},
		{name: "the stream was full a moment ago", outcomes: 1, full: true, relieved: time.Minute - 1},
		{name: "the stream is full again", outcomes: 1, full: true, relieved: time.Minute, want: true},
	} {
		now := begin
		p, _ := testParts(t, &now, &strings.Builder{})
		for i := range c.outcomes {
			p.NoteOutcome(id(i), 0, Done, "", c.found)
		}
		if now = now.Add(c.age); c.relieved > 0 {
			p.relieved = now.Add(-c.relieved)
		}
		if err := p.Fold(t.Context(), 9, c.full); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		data, err := p.cfg.Store.Get(t.Context(), partKey("c", 0))
		if (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.want {
			continue
		}
		if got, err := decodePart(data, "c"); err != nil || len(got.entries) != c.outcomes || got.Seq != 9 || len(p.outcomes) != 0 || p.found || p.next != 1 {
			t.Errorf("%s: part %+v, %v; %+v", c.name, got, err, p)
		}
	}
}

// The outcomes of a part leave the stream with the next part, and all of them with FoldAll. A part that a second leader
// has stored stays; the next number is used.
func TestFoldBesideAnotherLeader(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	p, purged := testParts(t, &now, &strings.Builder{})
	for n := range 2 {
		must(t, p.cfg.Store.Create(t.Context(), partKey("c", n), []byte("other")))
	}
	for seen := range uint64(2) {
		p.NoteOutcome(id(0), 0, Done, "", true)
		must(t, p.Fold(t.Context(), 7+seen, false))
	}
	if p.next != 4 || p.stored != 8 || !slices.Equal(*purged, []uint64{7}) {
		t.Errorf("%+v, removed %v", p, *purged)
	}
	for range 2 {
		if err := p.FoldAll(t.Context(), 8); err != nil || !slices.Equal(*purged, []uint64{7, 8}) {
			t.Errorf("%v, removed %v", err, *purged)
		}
	}
	p.NoteOutcome(id(1), 0, Done, "", false)
	p.cfg.Store = damagingStore{p.cfg.Store}
	if err := p.FoldAll(t.Context(), 9); !errors.Is(err, errPart) || slices.Contains(*purged, 9) {
		t.Errorf("a damaged part: %v, removed %v", err, *purged)
	}
}

// damagingStore is a store that creates damaged objects.
type damagingStore struct{ storage.Store }

func (s damagingStore) Create(ctx context.Context, key string, data []byte) error {
	return s.Store.Create(ctx, key, data[1:])
}

// The numbers of another result stream say nothing.
func TestFollow(t *testing.T) {
	t.Parallel()
	const stream, last = 3, 20
	now := time.Unix(1e9, 0)
	var log strings.Builder
	p, _ := testParts(t, &now, &log)
	for _, c := range []struct {
		stream int64
		seen   uint64
		kept   bool
		logged bool
	}{{stream, last, true, false}, {stream, last + 1, false, true}, {stream + 1, last, false, true}, {stream + 1, 0, false, false}} {
		log.Reset()
		p.stream, p.stored, p.emptied = c.stream, 1, 1
		after := p.Follow(stream, last, c.seen)
		if (after == c.seen && p.stored == 1 && p.emptied == 1) != c.kept || !c.kept && after != 0 || p.stream != stream || (log.Len() > 0) != c.logged {
			t.Errorf("%+v: read after %d, %+v, log %q", c, after, p, log.String())
		}
	}
}

// The next leader has the device-seconds of all outcomes, also if two leaders have stored parts, and those of retried items.
func TestSecondsOfParts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	p, _ := testParts(t, &now, &strings.Builder{})
	rival := NewParts(p.cfg)
	open := func(p *Parts) *Ledger {
		t.Helper()
		l := New()
		for i := range 6 {
			l.Add(id(i))
		}
		_, err := p.Enter(t.Context(), l)
		must(t, err)
		return l
	}
	settle := func(p *Parts, l *Ledger, i, round int, to State) {
		pool := []string{"", "spot"}[i%2]
		l.Spend(id(i), round, record.Use{Month: "2026-11", Pool: pool, Seconds: 2})
		l.Settle(id(i), round, to, "")
		p.NoteOutcome(id(i), round, to, "", false)
	}
	l, other := open(p), open(rival)
	for i := range 4 {
		settle(p, l, i, 0, Failed)
	}
	settle(p, l, 0, 0, Failed) // a repeated outcome
	settle(rival, other, 0, 0, Failed)
	must(t, p.Fold(t.Context(), 4, false))
	must(t, rival.FoldAll(t.Context(), 1))
	l.Reopen(id(0), 1)
	settle(p, l, 0, 1, Done)
	settle(p, l, 4, 0, Done)
	must(t, p.FoldAll(t.Context(), 6))
	want := []record.Use{{Month: "2026-11", Pool: manifest.DefaultPool, Seconds: 8}, {Month: "2026-11", Pool: "spot", Seconds: 4}}
	if next := open(NewParts(p.cfg)); !slices.Equal(l.Uses(), want) || !slices.Equal(next.Uses(), want) {
		t.Errorf("device-seconds %v, the next leader has %v; want %v", l.Uses(), next.Uses(), want)
	}
}

// TestEnterOutcomes enters the outcomes of parts of two leaders. The numbers are those of the part that is the newest of
// its stream.
func TestEnterOutcomes(t *testing.T) {
	now := time.Unix(1e9, 0)
	p, _ := testParts(t, &now, &strings.Builder{})
	l := New()
	for i := range 6 {
		l.Add(id(i))
	}
	k := func(i int) item.Identity { k, _ := item.ParseIdentity(id(i)); return k }
	put := func(number int, stream int64, seq uint64, entries ...partEntry) {
		t.Helper()
		data, err := (&part{partHeader: partHeader{Campaign: "c", Stream: stream, Seq: seq}, entries: entries}).encode()
		must(t, err)
		must(t, p.cfg.Store.Put(t.Context(), partKey("c", number), data))
	}
	check := func(next int, stream int64, seq uint64, states ...State) {
		t.Helper()
		p := NewParts(p.cfg)
		seen, err := p.Enter(t.Context(), l)
		if err != nil || p.next != next || p.stream != stream || p.stored != seq || seen != seq {
			t.Errorf("next part %d, stream %d, stored %d, seen %d, %v", p.next, p.stream, p.stored, seen, err)
		}
		for i, want := range states {
			if got := l.State(id(i)); got != want {
				t.Errorf("item %d is %v, want %v", i, got, want)
			}
		}
	}
	check(0, 0, 0, Pending)
	put(0, 7, 20, partEntry{id: k(0), state: Done}, partEntry{id: k(1), state: Failed, reason: "no image"})
	put(1, 7, 12, partEntry{id: k(2), state: Dead}) // of a leader that knew less
	check(2, 7, 20, Done, Failed, Dead, Pending)
	put(4, 8, 5, partEntry{id: k(1), state: Done}) // after the loss of the stream
	check(5, 8, 5, Done, Done, Dead, Pending)
	if got := l.Reason(id(1)); got != "" {
		t.Errorf("a restored item has the reason %q", got)
	}
	must(t, p.cfg.Store.Put(t.Context(), partPrefix("c")+"odd", nil))
	check(5, 8, 5, Done, Done, Dead, Pending)
}

// TestTail loses the result stream a minute after the last write of the tail: the next leader knows what was spent until then, and the next part has
// it. A part supersedes the tail.
func TestTail(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	p, _ := testParts(t, &now, &strings.Builder{})
	note := func(p *Parts, l *Ledger, i int) {
		l.Spend(id(i), 0, record.Use{Month: "2001-09", Seconds: 4})
		l.Settle(id(i), 0, Failed, "bad")
		p.NoteOutcome(id(i), 0, Failed, "bad", false)
	}
	enter := func() (*Parts, *Ledger, uint64) {
		t.Helper()
		next, l := NewParts(p.cfg), New()
		for i := range 8 {
			l.Add(id(i))
		}
		seen, err := next.Enter(t.Context(), l)
		must(t, err)
		return next, l, seen
	}
	p, l, _ := enter()
	p.Follow(3, 0, 0)
	for i, step := range []struct {
		age    time.Duration
		urgent bool
		seen   uint64 // in the store
	}{{0, false, 1}, {saveInterval - 1, false, 1}, {0, true, 3}, {saveInterval, false, 4}} {
		now = now.Add(step.age)
		note(p, l, i)
		must(t, p.Save(t.Context(), uint64(i+1), step.urgent))
		next, read, seen := enter()
		if uses := read.Uses(); seen != step.seen || len(uses) != 1 || uses[0].Seconds != 4*float64(seen) || len(next.outcomes) != int(seen) {
			t.Fatalf("step %d: through %d, %d outcomes, spent %v; want %d", i, seen, len(next.outcomes), uses, step.seen)
		}
	}
	next, l, seen := enter()
	if after := next.Follow(9, 0, seen); after != 0 || l.State(id(3)) != Failed {
		t.Errorf("a new stream is read after %d; %v", after, l.State(id(3)))
	}
	note(next, l, 4)
	must(t, next.Fold(t.Context(), 1, false))
	next, l, seen = enter()
	if seen != 1 || len(next.outcomes) > 4 || l.Uses()[0].Seconds != 20 || l.Total(0, false).Failed != 5 {
		t.Errorf("through %d, %d outcomes, %v, %+v", seen, len(next.outcomes), l.Uses(), l.Total(0, false))
	}
}
