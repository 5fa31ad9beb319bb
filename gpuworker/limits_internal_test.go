package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/queue"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

type leases func(n int, wait time.Duration) ([]*queue.Lease, error)

func (l leases) Lease(_ context.Context, n int, wait time.Duration) ([]*queue.Lease, error) {
	return l(n, wait)
}

func TestSingle(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	var n int
	var waited time.Duration
	q := leases(func(size int, wait time.Duration) ([]*queue.Lease, error) {
		n, waited = size, wait
		return make([]*queue.Lease, size), nil
	})
	s := Single{Queue: q, Items: Assignment{Store: dir, Sources: manifest.Files{}, Engine: &restore.Engine{}}}
	for want, change := range map[string]func(*Single){
		"Queue is missing": func(s *Single) { s.Queue = nil }, "Store is missing": func(s *Single) { s.Items.Store = nil },
		"Sources is missing": func(s *Single) { s.Items.Sources = nil }, "Engine is missing": func(s *Single) { s.Items.Engine = nil },
		"Batch: -1 is outside 0..1024": func(s *Single) { s.Items.Batch = -1 }, "Batch: 1025 is outside 0..1024": func(s *Single) { s.Items.Batch = 1025 },
	} {
		bad := s
		if change(&bad); bad.Validate() == nil || bad.Validate().Error() != want {
			t.Errorf("%v, want %s", bad.Validate(), want)
		}
	}
	for batch, want := range map[int]int{0: DefaultBatch, 1: 1, tuner.MaxBatch: tuner.MaxBatch} {
		if s.Items.Batch = batch; s.Validate() != nil {
			t.Errorf("batch %d: %v", batch, s.Validate())
		}
		a, all, err := s.Next(t.Context(), time.Minute)
		if err != nil || n != want || len(all) != want || a.Batch != want || waited != leaseSlice {
			t.Errorf("batch %d: %d items within %v, %v", batch, n, waited, err)
		}
	}
	if _, _, err := s.Next(t.Context(), 1); err != nil || waited != 1 {
		t.Errorf("waited %v", waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n = 0
	if _, _, err := s.Next(ctx, time.Minute); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("a draining worker leases %d items: %v", n, err)
	}
}

// The error of a stage decides what happens to an item. Of several causes the first in this order counts.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	running := func() *task { return &task{assigned: newAssigned(Assignment{}, 1, nil, 0)} }
	dropped := &task{assigned: newAssigned(Assignment{Lifetime: ended}, 1, nil, 0)}
	refusing := &task{assigned: newAssigned(Assignment{Refuse: func(error) {}}, 1, nil, 0)}
	other := errors.New("other")
	for i, tt := range []struct {
		ctx  context.Context
		t    *task
		err  error
		want string
	}{
		{ended, dropped, nil, "done"},
		{ended, dropped, guard.ErrHung, "dropped"},
		{ended, running(), &guard.HangError{}, "retried"},
		{ended, running(), context.Canceled, "drain"},
		{ended, running(), other, "retried"},
		{t.Context(), running(), context.Canceled, "retried"},
		{t.Context(), refusing, job.ErrUnsupported, "refusal"},
		{t.Context(), running(), job.ErrUnsupported, "failed"},
		{t.Context(), running(), errSuspended, "suspension"},
		{t.Context(), running(), job.ErrDigest, "doubt"},
		{t.Context(), running(), solver.ErrDiverged, "doubt"},
		{t.Context(), running(), raster.ErrNotFinite, "doubt"},
		{t.Context(), running(), raster.ErrBudget, "doubt"},
		{t.Context(), running(), job.ErrMemory, "doubt"},
		{t.Context(), running(), storage.ErrUnavailable, "fault"},
		{t.Context(), running(), onnxruntime.ErrMemory, "fault"},
		{t.Context(), running(), job.SourceError{Err: storage.ErrUnavailable}, "fault"},
		{t.Context(), running(), job.SourceError{Err: other}, "doubt"},
		{t.Context(), running(), job.ErrInput, "failed"},
		{t.Context(), running(), other, "retried"},
	} {
		if tt.err != nil {
			tt.err = fmt.Errorf("wrapped: %w", tt.err)
		}
		if o := outcomeOf(tt.ctx, tt.t, tt.err); o.String() != tt.want || !errors.Is(o.err, tt.err) {
			t.Errorf("%d: %v is %v, want %s", i, tt.err, o, tt.want)
		}
	}
	for _, err := range []error{
		job.ErrInput, job.ErrUnsupported, job.ErrMemory, raster.ErrFormat, raster.ErrTruncated, raster.ErrTooLarge, raster.ErrBudget, raster.ErrShape,
		raster.ErrNotFinite, operator.ErrTask, operator.ErrParam, operator.ErrShape, method.ErrSetting, solver.ErrConfig, solver.ErrDiverged,
	} {
		if o := outcomeOf(t.Context(), running(), fmt.Errorf("wrapped: %w", err)); o.kind != failed && o.why != doubt {
			t.Errorf("%v is %v", err, o)
		}
	}
}
