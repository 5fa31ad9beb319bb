package gpuworker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/queue"
	"ddiff/internal/restore/job"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// readOnlyStore is a store that fails after a permission is lost.
type readOnlyStore struct {
	*storage.Dir
	denied bool
}

func (s *readOnlyStore) Put(ctx context.Context, key string, data []byte) error {
	if s.denied {
		return storage.ErrReadOnly
	}
	return s.Dir.Put(ctx, key, data)
}

func (s *readOnlyStore) Create(ctx context.Context, key string, data []byte) error {
	if s.denied {
		return storage.ErrReadOnly
	}
	return s.Dir.Create(ctx, key, data)
}

func (s *readOnlyStore) Delete(ctx context.Context, key string) error {
	if s.denied {
		return storage.ErrReadOnly
	}
	return s.Dir.Delete(ctx, key)
}

// suspectTask is a task of a lease, with a store.
func suspectTask(t *testing.T, l *queue.Lease, s store) *task {
	t.Helper()
	return taskOf(t, l, Assignment{Campaign: "a", Store: s})
}

// taskOf is a task of a lease and an assignment.
func taskOf(t *testing.T, l *queue.Lease, a Assignment) *task {
	t.Helper()
	return &task{lease: l, assigned: newAssigned(a, 1, nil, 0), ctx: t.Context(), Job: job.Job{Item: item.Item{ID: l.ID()}}}
}

// The starts of a suspect have no answer until they are withdrawn, and count in one round only.
func TestStartsOfSuspect(t *testing.T) {
	t.Parallel()
	q, s, clock := internalQueue(t, queue.Config{MaxAttempts: 2}), emptyStore(t), newStoppedClock()
	w := quietWorker(t, func(cfg *Config) { cfg.Now = clock.now })
	l := leaseNew(t, q, 1)[0]
	stored := func() []attemptStart {
		t.Helper()
		starts, err := suspectTask(t, l, s).readStarts(t.Context())
		must(t, err)
		return starts
	}
	begin := func() (*task, error) {
		task := suspectTask(t, l, s)
		return task, w.recordStart(t.Context(), task)
	}
	if task, err := begin(); err != nil || len(stored()) != 0 || task.starts != nil {
		t.Fatalf("the first attempt in a batch is recorded: %v, %v", stored(), err)
	}
	l = retryOf(t, q, l)
	task, err := begin()
	want := attemptStart{Worker: "tester", Attempt: 2, At: clock.time, Stage: telemetry.StageFetch}
	if err != nil || !slices.Equal(stored(), []attemptStart{want}) {
		t.Fatalf("the start is %+v, %v", stored(), err)
	}
	w.recordStage(t.Context(), task, telemetry.StageRestore)
	if got := stored(); len(got) != 1 || got[0].Stage != telemetry.StageRestore {
		t.Errorf("the stage is recorded as %+v", got)
	}
	w.withdrawStart(t.Context(), task, false)
	if got := stored(); len(got) != 0 || task.starts != nil {
		t.Errorf("the withdrawn start remains: %+v", got)
	}

	// Attempts in the company of others do not bury an item; one alone does.
	l = retryOf(t, q, l)
	if !l.Exhausted() {
		t.Fatal("the lease has attempts left")
	}
	if _, err := begin(); err != nil {
		t.Fatalf("without a start: %v", err)
	}
	var crash crashError
	if task, err = begin(); !errors.As(err, &crash) || len(crash.starts) != 1 || task.starts != nil {
		t.Fatalf("the second start: %v", err)
	}
	const reason = "the item ended 1 workers that held no other item: tester (attempt 3, began 2026-01-02T03:04:05Z, last stage fetch, " +
		"no answer: killed by a signal, crashed or hung)"
	if crash.Error() != reason {
		t.Errorf("the reason is %q", crash)
	}

	// A settled item needs no record, also when this worker has not made it.
	w.withdrawStart(t.Context(), suspectTask(t, l, s), false)
	if len(stored()) != 1 {
		t.Error("a worker withdrew the start of another one")
	}
	unread := suspectTask(t, l, s)
	unread.Item.ID = ""
	w.withdrawStart(t.Context(), unread, true)
	if len(stored()) != 1 {
		t.Error("a task without an item withdrew a start")
	}
	w.withdrawStart(t.Context(), suspectTask(t, l, s), true)
	if _, err := s.Get(t.Context(), startsKey(l.ID())); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the record of a settled item remains: %v", err)
	}
}

// An item is blamed for the ends of its workers unless more of the others end meanwhile, or nobody knows.
func TestProof(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ starts, before, ended, attempts, want int }{
		"too few starts":                   {1, 0, 100, 3, 2},
		"a quiet cluster":                  {2, 5, 8, 3, 2},
		"as many ends of others":           {2, 5, 9, 3, 2},
		"more ends of others":              {2, 5, 10, 3, 12},
		"bounded":                          {11, 5, 1000, 3, 12},
		"quiet again after many":           {6, 5, 17, 3, 2},
		"one attempt":                      {1, 0, 0, 1, 1},
		"one attempt, more ends of others": {1, 0, 3, 1, 4},
		"not known at the first start":     {2, -1, 3, 3, 12},
		"not known now":                    {2, 0, -1, 3, 12},
		"another leader":                   {2, 7, 1, 3, 12},
	} {
		starts := make([]attemptStart, tt.starts)
		starts[0].Ended = tt.before
		if got := proof(starts, tt.attempts, tt.ended); got != tt.want {
			t.Errorf("%s: %d starts prove it, want %d", name, got, tt.want)
		}
	}
}

// An item with enough starts gets another attempt while workers end without it; its start records the count.
func TestStartWhereWorkersEnd(t *testing.T) {
	t.Parallel()
	q, s := internalQueue(t, queue.Config{MaxAttempts: 1}), emptyStore(t)
	ended, unknown := 4, error(nil)
	w := quietWorker(t, func(cfg *Config) {
		cfg.Ended = func(_ context.Context, campaign string) (int, error) {
			if campaign != "a" {
				t.Errorf("asked for campaign %q", campaign)
			}
			return ended, unknown
		}
	})
	task := suspectTask(t, retryOf(t, q, leaseNew(t, q, 1)[0]), s)
	for _, n := range []int{4, 20} {
		ended = n
		if err := w.recordStart(t.Context(), task); err != nil {
			t.Fatalf("with %d ends: %v", n, err)
		}
	}
	unknown = errors.New("no status")
	must(t, w.recordStart(t.Context(), task))
	starts, err := task.readStarts(t.Context())
	must(t, err)
	if len(starts) != 3 || starts[0].Ended != 4 || starts[1].Ended != 20 || starts[2].Ended != -1 {
		t.Errorf("starts %+v", starts)
	}
	ended, unknown = 8, nil // its own three, and one
	if err := w.recordStart(t.Context(), task); !errors.As(err, new(crashError)) {
		t.Errorf("a start in a quiet cluster: %v", err)
	}
}

// Starts of another round and damaged records are no evidence.
func TestForeignStarts(t *testing.T) {
	t.Parallel()
	q, s := internalQueue(t, queue.Config{MaxAttempts: 1}), emptyStore(t)
	task := suspectTask(t, retryOf(t, q, leaseNew(t, q, 1)[0]), s)
	other := attemptStart{Worker: "other", Round: 1, Attempt: 2}
	must(t, task.writeStarts(t.Context(), []attemptStart{other, {Worker: "here"}, other}))
	if got, err := task.readStarts(t.Context()); err != nil || len(got) != 1 || got[0].Worker != "here" {
		t.Errorf("starts %+v, %v", got, err)
	}
	// One start alone is enough with one attempt.
	if err := quietWorker(t).recordStart(t.Context(), task); !errors.As(err, new(crashError)) {
		t.Errorf("a start with one attempt: %v", err)
	}
	must(t, s.Put(t.Context(), startsKey(task.Item.ID), []byte("[{")))
	if got, err := task.readStarts(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("a damaged record: %+v, %v", got, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := task.readStarts(cancelled); err == nil || !strings.Contains(err.Error(), "read earlier starts") {
		t.Errorf("an unreadable record: %v", err)
	}
	if err := quietWorker(t).recordStart(cancelled, task); err == nil {
		t.Error("a start beside an unreadable record")
	}
}

// Failures of the record are an error at the start, and lines of the log later. Without a failure there is no line.
func TestStartsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	q, s, log := internalQueue(t, queue.Config{}), &readOnlyStore{Dir: emptyStore(t)}, new(strings.Builder)
	w := quietWorker(t, logTo(log))
	task := suspectTask(t, retryOf(t, q, leaseNew(t, q, 1)[0]), s)
	w.recordStage(t.Context(), task, telemetry.StageRestore) // no start is recorded
	must(t, w.recordStart(t.Context(), task))
	w.recordStage(t.Context(), task, telemetry.StageRestore)
	w.withdrawStart(t.Context(), task, false)
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
	s.denied = true
	if err := w.recordStart(t.Context(), task); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("error %v", err)
	}
	w.recordStage(t.Context(), task, telemetry.StageRestore)
	w.withdrawStart(t.Context(), task, false)
	for _, line := range []string{"could not record a stage", "could not remove the record of a start"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("the log lacks %q: %s", line, log)
		}
	}
}
