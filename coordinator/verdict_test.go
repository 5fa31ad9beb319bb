package coordinator_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/dataset"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestAttackOneLie: a wrong answer of a dataset's server, of a prior's server or of the worker of a preflight, which comes
// once, rejects no campaign. Meanwhile the status has the reason.
func TestAttackOneLie(t *testing.T) {
	t.Parallel()
	doubts := func(s record.CampaignStatus) bool { return strings.Contains(s.Status.Problem, "looks again") }
	t.Run("dataset", func(t *testing.T) {
		t.Parallel()
		tc := newTestCluster(t, 2)
		var looks atomic.Int32
		id := tc.submit("lie", 0)
		tc.leadWith(func(c *coordinator.Config) {
			c.Restart = time.Second
			c.Rows = func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
				if looks.Add(1) == 1 {
					return func(yield func(manifest.Row, error) bool) { yield(manifest.Row{}, manifest.ErrEmptyDataset) }
				}
				return manifest.Rows(ctx, d, skipped)
			}
		})
		tc.work(id)
		if s := tc.await(id, "a doubt", doubts); !strings.Contains(s.Status.Problem, manifest.ErrEmptyDataset.Error()) {
			t.Errorf("problem %q", s.Status.Problem)
		}
		tc.awaitPhase(id, record.PhaseFinished)
	})
	t.Run("preflight", func(t *testing.T) {
		t.Parallel()
		tc := newTestCluster(t, 2)
		tc.check.Failed, tc.check.Reason = "sources", "not found"
		id := tc.submit("lie", 1)
		tc.leadWith(func(c *coordinator.Config) { c.Restart = 2 * time.Second })
		tc.work(id)
		tc.await(id, "a doubt", doubts)
		tc.mu.Lock()
		tc.check.Failed = ""
		tc.mu.Unlock()
		tc.awaitPhase(id, record.PhaseFinished)
	})
	t.Run("prior", func(t *testing.T) {
		t.Parallel()
		tc := newTestCluster(t, 1)
		models := &countedErrors{err: fmt.Errorf("%w: NoSuchKey", dataset.ErrNotFound)}
		spec := tc.spec("lie")
		spec.Prior = "s3://priors/a.onnx"
		_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
		must(t, err)
		tc.leadWith(func(c *coordinator.Config) { c.Models, c.Restart = models, 50*time.Millisecond })
		s := tc.awaitPhase(spec.ID(""), record.PhaseRejected)
		if n := models.calls.Load(); n != 2 || !strings.Contains(s.Campaign.Reason, "not found") {
			t.Errorf("%d looks at a prior that is missing, reason %q", n, s.Campaign.Reason)
		}
	})
}

// countedErrors is a source of models that has none.
type countedErrors struct {
	err   error
	calls atomic.Int32
}

func (c *countedErrors) Get(context.Context, string) ([]byte, error) {
	c.calls.Add(1)
	return nil, c.err
}

// TestManyProblems: a campaign with a problem in each of thousands of tasks, as one of a newer version of ddiff, is rejected with the first of
// them: all would exceed the size of a record.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("sweep")
	spec.Tasks = nil
	for i := range 10_000 {
		spec.Tasks = append(spec.Tasks, item.Task{Name: "gaussian_deblur", Params: map[string]float64{"newer": float64(i)}})
	}
	if text := spec.Validate(manifest.Catalogue{}).Error(); len(text) <= queue.MaxRecordBytes {
		t.Fatalf("the problems fit into a record: %d bytes", len(text))
	}
	_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	tc.log = slog.New(slog.DiscardHandler) // they are in the log, too
	tc.lead()
	s := tc.awaitPhase(spec.ID(""), record.PhaseRejected)
	if reason := s.Campaign.Reason; !strings.Contains(reason, "tasks[0].params.newer") || len(reason) > 10<<10 || s.Status.Reason != reason {
		t.Errorf("%d bytes of reason: %.200s", len(reason), reason)
	}
}
