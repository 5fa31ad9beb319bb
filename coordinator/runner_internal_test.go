package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/health"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
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
	r.writer = board.NewWriter(kv, r.s.cfg.Store)
	r.s.writer, r.s.all = r.writer, newRunners(nil, nil)
	_, _, err := recordtest.Submit(t.Context(), r.s.cfg.Board, r.s.cfg.Store, &r.rec.Spec, board.Order{}, r.s.cfg.Now())
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
	r.adopt(r.rec)
	numbered := func(number int, change func(c *record.Campaign)) *record.Campaign {
		c := *r.rec
		c.Number = number
		change(&c)
		return &c
	}
	paused := func(c *record.Campaign) { c.Wanted = record.WantPause }
	cancelled := func(c *record.Campaign) { c.Wanted = record.WantCancel }
	r.offer(numbered(0, paused))
	if r.offered != nil || len(r.wake) != 0 {
		t.Error("a record of the runner's own number was accepted")
	}
	fifth := numbered(5, paused)
	r.offer(fifth)
	r.offer(numbered(5, cancelled))
	r.offer(numbered(4, cancelled))
	if r.offered != fifth || len(r.wake) != 1 {
		t.Errorf("offered %+v, %d signals", r.offered, len(r.wake))
	}
	r.applyOffered()
	if r.rec.Wanted != record.WantPause || r.offered != nil {
		t.Errorf("wanted %s", r.rec.Wanted)
	}
	r.applyOffered()
	sixth := numbered(6, cancelled)
	r.offer(sixth)
	if c := r.nextRecord(); c != sixth {
		t.Errorf("next record %+v", c)
	}
	finished := func(c *record.Campaign) { c.Phase = record.PhaseFinished }
	r.offer(numbered(7, finished))
	if c := r.nextRecord(); c != nil {
		t.Errorf("a finished campaign continues with %+v", c)
	}
	eighth := numbered(8, finished)
	r.offer(eighth)
	r.ask("1", board.VerbRetry, board.Command{})
	if c := r.nextRecord(); c != eighth {
		t.Errorf("a finished campaign with a command continues with %+v", c)
	}
	r.answer(api.Appended{}, nil)
	if c := r.nextRecord(); c != r.rec {
		t.Errorf("the own record is not continued: %+v", c)
	}
	asked := r.ask("2", board.VerbRetry, board.Command{})
	r.rec = nil
	if c := r.nextRecord(); c != nil {
		t.Errorf("next record %+v", c)
	}
	if _, err := asked.await(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("the command of a deleted campaign: %v", err)
	}
}

// A deleted campaign starts again only with a later record.
func TestStoppedRunner(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	all := newRunners(nil, nil)
	all.byID[r.id] = r
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
	r.offer(r.rec)
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
	started := 0
	all := newRunners(func(*record.Campaign) *runner { return r }, func(*runner) { started++ })
	finished := *r.rec
	finished.Phase = record.PhaseFinished
	all.deliver(&finished)
	if all.has(r.id) || started != 0 {
		t.Error("a finished campaign has a runner")
	}
	all.deliver(r.rec)
	if !all.has(r.id) || started != 1 {
		t.Error("an active campaign has no runner")
	}
	finished.Number = 3
	if all.deliver(&finished); started != 1 {
		t.Error("a second runner")
	}
	if c := all.next(r); c != nil || all.has(r.id) {
		t.Error("a finished campaign keeps its runner")
	}
	if all.owned("") != 1 || all.owned("ann") != 0 {
		t.Error("the campaigns of an owner")
	}
	all.ask(&finished, "1", board.VerbRetry, board.Command{})
	if !all.has(r.id) || started != 2 {
		t.Error("a finished campaign with a command has no runner")
	}
}
