package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// An outcome enters the next part unless it is pending, unreadable, or of a Run.
func TestNotedOutcomes(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now := begin
	r := decidingRunner(t, &now, &strings.Builder{})
	c := &r.checkpoint
	r.noteOutcome("short", 0, done, "", true)
	r.noteOutcome(id(0), 0, pending, "", true)
	if len(c.outcomes) != 0 || c.found || !c.since.IsZero() {
		t.Errorf("checkpoint %+v", c)
	}
	r.noteOutcome(id(0), 1, failed, strings.Repeat("x", maxReason+1), false)
	now = now.Add(time.Minute)
	r.noteOutcome(id(1), 2, done, "", true)
	r.noteOutcome(id(2), 2, done, "", false)
	if len(c.outcomes) != 3 || !c.found || !c.since.Equal(begin) {
		t.Errorf("%d outcomes since %v, found %t", len(c.outcomes), c.since, c.found)
	}
	if o := c.outcomes[0]; o.state != failed || o.round != 1 || len(o.reason) != maxReason {
		t.Errorf("outcome %+v", o)
	}
	r.s.cfg.run = &RunConfig{}
	r.noteOutcome(id(3), 2, done, "", false)
	if len(c.outcomes) != 3 {
		t.Error("a Run stores outcomes")
	}
}

// TestFoldDue has the conditions under which outcomes are stored.
func TestFoldDue(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	for _, c := range []struct {
		name     string
		outcomes int
		change   func(r *runner, now *time.Time)
		want     bool
	}{
		{"few and young", 3, func(*runner, *time.Time) {}, false},
		{"enough", 4, func(*runner, *time.Time) {}, true},
		{"not released", 4, func(r *runner, _ *time.Time) { r.rec.Released = false }, false},
		{"of a Run", 4, func(r *runner, _ *time.Time) { r.s.cfg.run = &RunConfig{} }, false},
		{"found", 1, func(r *runner, _ *time.Time) { r.checkpoint.found = true }, true},
		{"almost old", 1, func(_ *runner, now *time.Time) { *now = begin.Add(foldInterval - 1) }, false},
		{"old", 1, func(_ *runner, now *time.Time) { *now = begin.Add(foldInterval) }, true},
		{"none, after an hour", 0, func(_ *runner, now *time.Time) { *now = begin.Add(foldInterval) }, false},
		{"the stream is full", 1, func(r *runner, _ *time.Time) { r.s.alarm.results = true }, true},
		{"the stream was full a moment ago", 1, func(r *runner, _ *time.Time) {
			r.s.alarm.results, r.checkpoint.relieved = true, begin.Add(-alarmTicks*r.s.cfg.Tick+1)
		}, false},
		{"the stream is full again", 1, func(r *runner, _ *time.Time) {
			r.s.alarm.results, r.checkpoint.relieved = true, begin.Add(-alarmTicks*r.s.cfg.Tick)
		}, true},
	} {
		now := begin
		r := decidingRunner(t, &now, &strings.Builder{})
		r.rec.Released, r.s.cfg.Fold = true, 4
		for i := range c.outcomes {
			r.noteOutcome(id(i), 0, done, "", false)
		}
		c.change(r, &now)
		if err := r.foldDue(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		data, err := r.s.cfg.Store.Get(t.Context(), outcomePartKey(r.id, 0))
		if (err == nil) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.want {
			continue
		}
		if p, err := decodePart(data, r.id); err != nil || len(p.entries) != c.outcomes || len(r.checkpoint.outcomes) != 0 || r.checkpoint.found {
			t.Errorf("%s: part %+v, %v; checkpoint %+v", c.name, p, err, r.checkpoint)
		}
		if r.checkpoint.next != 1 {
			t.Errorf("%s: the next part is %d", c.name, r.checkpoint.next)
		}
	}
}

// A part that a second leader has stored stays; the next number is used.
func TestFoldBesideAnotherLeader(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	r.rec.Released = true
	for n := range 2 {
		if err := r.s.cfg.Store.Create(t.Context(), outcomePartKey(r.id, n), []byte("other")); err != nil {
			t.Fatal(err)
		}
	}
	r.noteOutcome(id(0), 0, done, "", true)
	r.seen = 7
	if err := r.foldOutcomes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := r.checkpoint; c.next != 3 || c.stored != 7 || len(c.outcomes) != 0 || c.found {
		t.Errorf("checkpoint %+v", c)
	}
}

// The leader stores many outcomes at its end, and leaves few in the stream.
func TestFoldAtExit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, tt := range []struct {
		n, want int
		full    bool // the store refuses the part
	}{{foldAtExit - 1, 0, false}, {foldAtExit, 1, false}, {foldAtExit, 0, true}} {
		var log strings.Builder
		r := decidingRunner(t, &now, &log).onBoard(t)
		r.rec.Released = true
		n, want := tt.n, tt.want
		for i := range n {
			r.noteOutcome(id(i), 0, done, "", false)
		}
		if tt.full {
			r.s.cfg.Store = fullStore{r.s.cfg.Store}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		r.foldAtExit(ended)
		if r.checkpoint.next != want {
			t.Errorf("%d outcomes: %d parts, want %d", n, r.checkpoint.next, want)
		}
		if logged := strings.Contains(log.String(), "could not store the ledger for the next leader"); logged != tt.full {
			t.Errorf("%d outcomes, full store %t: log %s", n, tt.full, log.String())
		}
	}
}

// fullStore is a store that creates nothing.
type fullStore struct{ storage.Store }

func (fullStore) Create(context.Context, string, []byte) error { return errors.New("no space") }

// Failures are listed in files of 5000 lines; files of an earlier report go, and results that are done are left out. The lists of other
// campaigns and an output inside the folder stay.
func TestFailureList(t *testing.T) {
	t.Parallel()
	const prefix, other = manifest.FailuresFolder + "c/", manifest.FailuresFolder + "d/000000.jsonl"
	const inner = prefix + "inner/index.html"
	now := time.Unix(1e9, 0)
	for n, want := range map[int][]int{0: nil, 1: {1}, failuresPerFile: {failuresPerFile}, 2*failuresPerFile + 1: {failuresPerFile, failuresPerFile, 1}} {
		store := decidingRunner(t, &now, &strings.Builder{}).s.cfg.Store
		for _, key := range []string{prefix + "000000.jsonl", prefix + "000007.jsonl", other, inner} {
			if err := store.Put(t.Context(), key, []byte("old")); err != nil {
				t.Fatal(err)
			}
		}
		l := newFailureList(store, "c")
		seen, problems := 0, 0
		for _, err := range l.watch(t.Context(), func(yield func(manifest.Result, error) bool) {
			for i := range 2 * n {
				outcome := []manifest.Outcome{manifest.OutcomeDone, manifest.OutcomeFailed}[i%2]
				if !yield(manifest.Result{Outcome: outcome}, nil) {
					return
				}
			}
			yield(manifest.Result{Outcome: manifest.OutcomeFailed}, errors.New("no store"))
		}) {
			seen++
			if err != nil {
				problems++
			}
		}
		if err := l.finish(t.Context()); err != nil || seen != 2*n+1 || problems != 1 {
			t.Fatalf("%d results with %d errors: %v", seen, problems, err)
		}
		var got []int
		for info, err := range store.List(t.Context(), prefix) {
			if info.Key == inner {
				continue
			}
			if err != nil || info.Key != fmt.Sprintf("%s%06d.jsonl", prefix, len(got)) {
				t.Fatalf("file %s, %v", info.Key, err)
			}
			data, err := store.Get(t.Context(), info.Key)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Count(string(data), "\n"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d failures: %v lines", n, got)
		}
		for _, key := range []string{other, inner} {
			if _, err := store.Stat(t.Context(), key); err != nil {
				t.Errorf("%s, which is not of this campaign: %v", key, err)
			}
		}
	}
}

// An error of the store does not end the report, but its list.
func TestFailureListWithoutStore(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	store := decidingRunner(t, &now, &strings.Builder{}).s.cfg.Store
	if err := store.Put(t.Context(), manifest.FailuresFolder+"c", nil); err != nil { // in the place of the folder
		t.Fatal(err)
	}
	l := newFailureList(store, "c")
	seen := 0
	for _, err := range l.watch(t.Context(), func(yield func(manifest.Result, error) bool) {
		for range failuresPerFile + 1 {
			if !yield(manifest.Result{}, nil) {
				return
			}
		}
	}) {
		if seen++; err != nil {
			t.Fatal(err)
		}
	}
	if err := l.finish(t.Context()); err == nil || !strings.Contains(err.Error(), "000000.jsonl") || seen != failuresPerFile+1 || l.n != failuresPerFile {
		t.Errorf("error %v, %d results, %d lines", err, seen, l.n)
	}
}

// TestCheckedStream: the numbers of another result stream say nothing.
func TestCheckedStream(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	r := decidingRunner(t, &now, &log).onBoard(t)
	data, err := json.Marshal(manifest.Event{Outcome: manifest.OutcomeDone})
	if err == nil {
		err = r.queue.PublishResult(t.Context(), id(0), 0, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	stream, last, err := r.queue.ResultStream(t.Context())
	if err != nil || last == 0 {
		t.Fatalf("stream %d, last %d, %v", stream, last, err)
	}
	for _, c := range []struct {
		stream int64
		seen   uint64
		kept   bool
		logged bool
	}{{stream, last, true, false}, {stream, last + 1, false, true}, {stream + 1, last, false, true}, {stream + 1, 0, false, false}} {
		log.Reset()
		r.seen, r.checkpoint = c.seen, checkpoint{stream: c.stream, stored: 1, emptied: 1}
		if err := r.checkStream(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := r.checkpoint
		if (r.seen == c.seen && k.stored == 1 && k.emptied == 1) != c.kept || k.stream != stream || (log.Len() > 0) != c.logged {
			t.Errorf("%+v: seen %d, checkpoint %+v, log %q", c, r.seen, k, log.String())
		}
	}
	r.ledger.add(id(0))
	if err := r.catchUp(t.Context()); err != nil || r.seen != last || r.ledger.open != 0 {
		t.Errorf("seen %d, open %d, %v", r.seen, r.ledger.open, err)
	}
	if err := r.removeDead(t.Context(), func(queue.DeadLetter) bool { return true }); err != nil {
		t.Error(err)
	}
}
