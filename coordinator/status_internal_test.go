package coordinator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// A status is written if counts, phase, workers, problem or warning have changed, after five seconds if its rate has, or after a minute.
func TestPublishedStatus(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now := begin
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	r.outcomes.ledger.Add(id(0))
	revision := func() uint64 {
		t.Helper()
		must(t, r.publishStatus(t.Context(), 0))
		_, revision, err := r.s.cfg.Board.Get(t.Context(), record.KeyStatusPrefix+r.id)
		must(t, err)
		return revision
	}
	fill := func(messages uint64) { // of a stream of 1000
		ctx, end := context.WithCancel(t.Context())
		cfg := r.s.cfg.health()
		cfg.Usage = func(context.Context) ([]queue.StreamUsage, error) {
			end()
			return []queue.StreamUsage{{Name: "A", Messages: messages, MaxMessages: 1000}}, nil
		}
		must(t, r.s.streams.Watch(ctx, cfg))
	}
	last := revision()
	for _, c := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"almost a minute", func() { now = now.Add(restingInterval - time.Millisecond) }, false},
		{"a minute", func() { now = now.Add(time.Millisecond) }, true},
		{"rate", func() { r.status.last.Rate, now = 1, now.Add(statusInterval-time.Millisecond) }, false},
		{"rate after five seconds", func() { now = now.Add(time.Millisecond) }, true},
		{"a leader whose clock was ahead", func() { r.status.last.At = now.Add(time.Hour) }, true},
		{"counts", func() { r.outcomes.ledger.Add(id(1)) }, true},
		{"phase", func() { r.rec.Phase = record.PhasePreflight }, true},
		{"workers", func() {
			beat := fmt.Sprintf(`{"name":"one","schema":%d,"at":%q}`, record.Schema, now.UTC().Format(time.RFC3339Nano))
			must(t, r.s.cfg.Board.Put(t.Context(), record.KeyWorkerPrefix+"one", []byte(beat)))
			watch := lifecycle.Go(t.Context(), func(ctx context.Context) error { return r.s.workers.Watch(ctx, r.s.cfg.health()) })
			for r.s.workers.Live("") == 0 {
				time.Sleep(time.Millisecond)
			}
			watch.Stop()
		}, true},
		{"problem", func() { fill(999) }, true},
		{"warning", func() { r.windows.warning = "3 rows are new" }, true},
		{"the end", func() { r.rec.Phase = record.PhaseFinished }, true},
	} {
		c.change()
		next := revision()
		if (next != last) != c.want {
			t.Errorf("%s: written %t", c.name, next != last)
		}
		last = next
	}
	s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
	if err != nil || s.Status.Problem != "" || s.Status.Warning != "3 rows are new" || s.Status.Counts.Items != 2 || s.Status.Workers != 1 {
		t.Errorf("status %+v, %v", s.Status, err)
	}
}

// TestAttackEstimate: a campaign has no remaining time without workers, nor while workers serve others.
func TestAttackEstimate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	for i := range 100 {
		r.outcomes.ledger.Add(id(i))
	}
	r.outcomes.caught = true
	r.outcomes.pace.begin(now.Add(-time.Minute))
	r.outcomes.pace.add(now, now.Add(-time.Second), 30)
	left := func(leased int) float64 {
		t.Helper()
		now = now.Add(statusInterval)
		must(t, r.publishStatus(t.Context(), leased))
		return r.status.last.Left
	}
	r.outcomes.progress = now
	if left(4) != 0 {
		t.Error("an estimate without workers")
	}
	beat := fmt.Sprintf(`{"name":"one","schema":%d}`, record.Schema)
	must(t, r.s.cfg.Board.Put(t.Context(), record.KeyWorkerPrefix+"one", []byte(beat)))
	watch := lifecycle.Go(t.Context(), func(ctx context.Context) error { return r.s.workers.Watch(ctx, r.s.cfg.health()) })
	for r.s.workers.Live("") == 0 {
		time.Sleep(time.Millisecond)
	}
	watch.Stop()
	if left(4) == 0 {
		t.Error("no estimate of a campaign that is worked on")
	}
	if now = now.Add(idleAfter); left(0) != 0 {
		t.Error("an estimate while workers serve other campaigns")
	}
}

// TestWaitingReason: the delay grows, a cause is new once, and the begin is that of the first cause.
func TestWaitingReason(t *testing.T) {
	t.Parallel()
	var w waiting
	begin := time.Unix(1e9, 0)
	for i, c := range []struct {
		cause string
		isNew bool
	}{{"no route", true}, {"no route", false}, {"denied", true}} {
		delay, isNew := w.set("dataset", c.cause, begin.Add(time.Duration(i)*time.Hour), time.Second)
		if isNew != c.isNew || delay <= 0 || delay > maxSourceWait*time.Second {
			t.Errorf("%d: delay %v, new %t", i, delay, isNew)
		}
		if want := "waiting for the dataset since 2001-09-09T01:46:40Z: " + c.cause; w.reason() != want {
			t.Errorf("reason %q", w.reason())
		}
	}
	w.clear()
	if w.reason() != "" {
		t.Errorf("reason %q", w.reason())
	}
	if _, isNew := w.set("prior", "denied", begin.Add(time.Hour), time.Second); !isNew || w.reason() != "waiting for the prior since 2001-09-09T02:46:40Z: denied" {
		t.Errorf("reason %q", w.reason())
	}
}
