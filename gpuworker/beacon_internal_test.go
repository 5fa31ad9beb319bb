package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
)

// memoryBoard records the calls of a beacon, and fails on request.
type memoryBoard struct {
	mu    sync.Mutex
	calls []string
	last  record.Beat
	err   error
	limit time.Duration // of the last call
}

// look calls a function between two calls of the beacon.
func (m *memoryBoard) look(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *memoryBoard) Put(ctx context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.last = append(m.calls, "put "+key), record.Beat{}
	deadline, _ := ctx.Deadline()
	m.limit = time.Until(deadline)
	return errors.Join(m.err, json.Unmarshal(data, &m.last))
}

func (m *memoryBoard) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, "delete "+key)
	return m.err
}

// A beacon publishes every five seconds and at the begin of a preflight, and deletes the record at the end.
func TestBeaconPublishes(t *testing.T) {
	t.Parallel()
	key := record.KeyWorkerPrefix + queue.Token("tester")
	synctest.Test(t, func(t *testing.T) {
		board, log := &memoryBoard{}, new(strings.Builder)
		w := quietWorker(t, logTo(log))
		b := &Beacon{Board: board, Worker: w, Provider: "cpu", Device: "a processor", Logger: w.cfg.Logger}
		s := lifecycle.Go(t.Context(), b.Run)
		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		board.look(func() {
			if len(board.calls) != 1 || board.last.Provider != "cpu" || board.last.Device != "a processor" || board.limit != 5*time.Second {
				t.Errorf("calls %q, record %+v, limit %v", board.calls, board.last, board.limit)
			}
		})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		board.look(func() {
			if len(board.calls) != 2 || log.Len() > 0 {
				t.Errorf("calls %q, log %s", board.calls, log)
			}
			board.err = errStore
		})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		board.look(func() {
			if n := strings.Count(log.String(), "could not publish heartbeat"); n != 1 {
				t.Errorf("log %s", log)
			}
			board.err = nil
		})
		w.announce(t.Context()) // returns after a heartbeat
		board.look(func() {
			if len(board.calls) != 4 {
				t.Errorf("calls %q when a preflight begins", board.calls)
			}
		})
		synctest.Wait()
		s.Stop()
		if want := fmt.Sprint([]string{"put " + key, "put " + key, "put " + key, "put " + key, "delete " + key}); fmt.Sprint(board.calls) != want {
			t.Errorf("calls %v, want %v", board.calls, want)
		}
	})
}

// The record of a worker that hung remains, and names the stage. The heartbeat names suspensions.
func TestBeaconOfHungWorker(t *testing.T) {
	t.Parallel()
	clock, board, log := newStoppedClock(), &memoryBoard{}, new(strings.Builder)
	w := quietWorker(t, func(cfg *Config) { cfg.Now, cfg.Version = clock.now, "v1" })
	b := &Beacon{Board: board, Worker: w, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if err := w.Health(); err != nil {
		t.Errorf("a worker without a hang: %v", err)
	}
	beat := w.Beat()
	if beat.Name != "tester" || beat.Version != "v1" || beat.Schema != record.Schema || beat.Hung != "" || beat.Suspended != "" || beat.Refused != nil ||
		!beat.At.Equal(clock.time) {
		t.Errorf("heartbeat %+v", beat)
	}
	for range guard.FailuresToSuspend {
		failsNow(w, "a", errStore)
	}
	if beat := w.Beat(); beat.SuspendedCampaign != "a" || beat.Suspended != oneLine(errStore) {
		t.Errorf("heartbeat %+v", beat)
	}
	a := w.watchdog.Begin(t.Context(), "solve", time.Minute)
	defer a.End()
	w.watchdog.Check(time.Minute)
	b.finish(t.Context(), "workers/tester")
	if log.Len() > 0 {
		t.Errorf("log %s", log)
	}
	if !errors.Is(w.Health(), guard.ErrHung) || len(board.calls) != 1 || !strings.HasPrefix(board.calls[0], "put") || !strings.Contains(board.last.Hung, "stage solve took 1m0s") {
		t.Errorf("%v, calls %q, record %+v", w.Health(), board.calls, board.last)
	}
	board.err = errStore
	b.finish(t.Context(), "workers/tester")
	if strings.Count(log.String(), "could not finish the worker's record") != 1 {
		t.Errorf("log %s", log)
	}
}

// The curve of a long run has at most maxPoints values at equal distances, and only the first items of a large batch are named.
func TestSolvingOf(t *testing.T) {
	t.Parallel()
	const steps = 70
	var tasks []*task
	var curves []solver.Curves
	norms := make([]float64, steps)
	for i := range norms {
		norms[i] = float64(i + 1)
	}
	for i := range maxSolving + 1 {
		tasks = append(tasks, &task{Job: job.Job{Item: item.Item{ID: string(rune('a' + i))}}, assigned: newAssigned(Assignment{Campaign: "c"}, 1, nil, 0)})
		curves = append(curves, solver.Curves{Curves: []solver.Curve{{Name: "gamma"}, {Name: "data_norm", Values: norms}}})
	}
	got := solvingOf(tasks, curves, steps, 100, 250*time.Millisecond)
	if got.Campaign != "c" || got.Step != steps || got.Steps != 100 || got.Rate != 4 || len(got.Items) != maxSolving {
		t.Errorf("%+v", got)
	}
	it := got.Items[1]
	if it.ID != "b" || it.Stride != 3 || len(it.DataNorm) != 23 || it.DataNorm[0] != 3 || it.DataNorm[22] != 69 {
		t.Errorf("%+v", it)
	}
	if got := solvingOf(tasks[:1], make([]solver.Curves, 1), 0, 100, 0); got.Rate != 0 || got.Items[0].DataNorm != nil {
		t.Errorf("before the first step: %+v", got)
	}
}
