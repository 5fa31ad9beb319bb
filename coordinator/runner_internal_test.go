package coordinator

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/coordinator/health"
	"ddiff/coordinator/ledger"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/storage"
)

var id, must = boardtest.ID, boardtest.Must

// queueOf opens the queues of a connection.
func queueOf(nc *queue.Conn) openQueue {
	return func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, nc, queue.Config{
			Campaign: campaign, AckWait: 2 * time.Second, MaxAttempts: attempts,
		})
	}
}

// decidingRunner is a runner with a real store and an empty ledger, for tests of its decisions. It has no board and no queue.
// Its clock is *now, its log goes to log.
func decidingRunner(t *testing.T, now *time.Time, log *strings.Builder) *runner {
	t.Helper()
	store, err := storage.NewDir(t.TempDir())
	must(t, err)
	cfg := Config{
		Store: store, Sources: manifest.Files{}, Now: func() time.Time { return *now }, Tracer: noop.NewTracerProvider().Tracer(""),
		Logger: slog.New(slog.NewTextHandler(log, nil)), Probe: time.Millisecond,
	}.withDefaults()
	s := &Service{cfg: cfg, priors: newPriors(), health: health.New(cfg.health()), suspects: make(chan struct{}, 1)}
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Tasks = "decisions", "/data", []item.Task{{Name: "hdr"}}
	r := newRunner(s, board.NewRecord(spec, board.Order{}, *now))
	r.rec, r.outcomes.ledger, r.results, r.windows = board.NewRecord(spec, board.Order{}, *now), ledger.New(), results{store: store, log: r.log, now: cfg.Now}, newWindows(store, r.id)
	must(t, r.openParts(t.Context()))
	return r
}

// onBoard gives a runner a real queue server: a board with its record, and its queue.
func (r *runner) onBoard(t *testing.T) *runner {
	t.Helper()
	_, nc, kv := boardtest.Start(t)
	r.s.cfg.Board = kv
	r.s.cfg.Open = queueOf(nc)
	_, _, err := board.Submit(t.Context(), r.s.cfg.Board, &r.rec.Spec, board.Order{}, r.s.cfg.Now())
	must(t, err)
	must(t, r.openQueue(t.Context()))
	t.Cleanup(func() { r.outcomes.stop() })
	return r
}

// An older record than the last one is ignored; a newer one replaces it, also before it is read.
func TestOfferedRecords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	paused, cancelled := *r.rec, *r.rec
	paused.Wanted, cancelled.Wanted = manifest.WantPause, manifest.WantCancel
	r.offer(&paused, 0)
	if r.offered != nil || len(r.wake) != 0 {
		t.Error("a record of the runner's own revision was accepted")
	}
	r.offer(&paused, 5)
	r.offer(&cancelled, 5)
	r.offer(&cancelled, 4)
	if r.offered != &paused || len(r.wake) != 1 {
		t.Errorf("offered %+v, %d signals", r.offered, len(r.wake))
	}
	r.applyOffered()
	if r.rec.Wanted != manifest.WantPause || r.offered != nil {
		t.Errorf("wanted %s", r.rec.Wanted)
	}
	r.applyOffered()
	r.offer(&cancelled, 6)
	if c := r.nextRecord(); c != &cancelled {
		t.Errorf("next record %+v", c)
	}
	finished := *r.rec
	finished.Phase = manifest.PhaseFinished
	r.offer(&finished, 7)
	if c := r.nextRecord(); c != nil {
		t.Errorf("a finished campaign continues with %+v", c)
	}
	if c := r.nextRecord(); c != r.rec {
		t.Errorf("the own record is not continued: %+v", c)
	}
	r.rec = nil
	if c := r.nextRecord(); c != nil {
		t.Errorf("next record %+v", c)
	}
}

// A deleted campaign starts again only with a later record.
func TestStoppedRunner(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	all := &runners{byID: map[string]*runner{r.id: r}}
	all.stop("unknown")
	running, cancel := r.begin(t.Context())
	defer cancel()
	if running.Err() != nil {
		t.Fatal("the runner ended at its begin")
	}
	all.stop(r.id)
	if running.Err() == nil {
		t.Error("a deleted campaign runs on")
	}
	again, cancel := r.begin(t.Context())
	defer cancel()
	if again.Err() == nil {
		t.Error("a deleted campaign runs again")
	}
	r.offer(r.rec, 1)
	later, cancel := r.begin(t.Context())
	defer cancel()
	if later.Err() != nil {
		t.Error("a campaign that was submitted again does not run")
	}
	if !all.has(r.id) || all.has("unknown") {
		t.Error("wrong runners")
	}
	all.remove(r)
	if all.has(r.id) {
		t.Error("a removed runner is there")
	}
}

// A runner is created for an active campaign only, once.
func TestDeliveredRecords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	all := &runners{byID: map[string]*runner{}}
	finished := *r.rec
	finished.Phase = manifest.PhaseFinished
	if got, created := all.deliver(&finished, 1, func() *runner { return r }); created || got != nil {
		t.Error("a finished campaign has a runner")
	}
	if got, created := all.deliver(r.rec, 2, func() *runner { return r }); !created || got != r {
		t.Error("an active campaign has no runner")
	}
	if _, created := all.deliver(&finished, 3, func() *runner { return nil }); created {
		t.Error("a second runner")
	}
	if c := all.next(r); c != nil || all.has(r.id) {
		t.Error("a finished campaign keeps its runner")
	}
}
