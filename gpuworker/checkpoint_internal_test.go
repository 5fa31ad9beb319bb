package gpuworker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/queue"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/storage"
)

// A checkpoint without a body, a truncated one, and one of another item are no checkpoints.
func TestDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	good, err := encodeCheckpoint(&job.Checkpoint{State: solver.State{Step: 2, Tensors: []solver.Tensor{{Name: "x", Data: []float32{1, 2}}}}}, "own")
	must(t, err)
	empty := checksum("own", nil)
	for name, c := range map[string]struct {
		id     string
		data   []byte
		reason string
	}{
		"nothing":      {"own", nil, "wrong checksum"},
		"short":        {"own", good[:31], "wrong checksum"},
		"sum only":     {"own", empty[:], "EOF"},
		"truncated":    {"own", good[:len(good)-1], "wrong checksum"},
		"other item":   {"other", good, "wrong checksum"},
		"flipped byte": {"own", append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), "wrong checksum"},
	} {
		if _, err := decodeCheckpoint(c.data, c.id); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: error %v, want %s", name, err, c.reason)
		}
	}
}

// A damaged checkpoint is deleted, and a line of the log. A store that does not answer is an error.
func TestLoadOfCheckpoints(t *testing.T) {
	t.Parallel()
	s, log := &readOnlyStore{Dir: emptyStore(t)}, new(strings.Builder)
	e := engineRestorer{quietWorker(t, logTo(log)).core}
	tasks := []*task{{lease: new(queue.Lease), assigned: newAssigned(Assignment{Store: s}, 1, nil, 0), Job: job.Job{Item: item.Item{ID: "own", Name: "own"}}}}
	task := tasks[0]
	load := func(ctx context.Context) error { return e.loadCheckpoint(ctx, task) }
	if err := load(t.Context()); err != nil || task.Checkpoint != nil || log.Len() > 0 {
		t.Errorf("no checkpoint: %v, %+v, log %s", err, task.Checkpoint, log)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := load(cancelled); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "read checkpoint") {
		t.Errorf("an unreadable checkpoint: %v", err)
	}
	must(t, s.Put(t.Context(), checkpointKey("own"), []byte("damaged")))
	s.denied = true
	if err := load(t.Context()); err != nil || strings.Count(log.String(), "could not delete a checkpoint") != 1 {
		t.Errorf("a checkpoint that cannot be deleted: %v, log %s", err, log)
	}
	s.denied = false
	log.Reset()
	if err := load(t.Context()); err != nil || strings.Contains(log.String(), "could not delete") || strings.Count(log.String(), "damaged or does not fit") != 1 {
		t.Errorf("a damaged checkpoint: %v, log %s", err, log)
	}
	if _, err := s.Get(t.Context(), checkpointKey("own")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the damaged checkpoint remains: %v", err)
	}
	// An item without a step needs no checkpoint.
	e.storeCheckpoints(t.Context(), tasks)
	if _, err := s.Get(t.Context(), checkpointKey("own")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a checkpoint without a step: %v", err)
	}
}
