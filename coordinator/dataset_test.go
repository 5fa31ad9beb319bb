package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// filteredRows passes on the rows that include reports true for, or the error that it returns.
func filteredRows(rows shard.Rows, include func(row *manifest.Row) (bool, error)) shard.Rows {
	return func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for row, err := range rows(ctx, d, skipped) {
				ok := err == nil
				if ok {
					ok, err = include(&row)
				}
				if err != nil {
					yield(manifest.Row{}, err)
					return
				}
				if ok && !yield(row, nil) {
					return
				}
			}
		}
	}
}

// windows reads the stored windows of a campaign.
func (tc *testCluster) windows(campaign string) (out []*shard.Window) {
	tc.t.Helper()
	for info, err := range tc.store.List(tc.t.Context(), shard.Prefix(campaign)) {
		must(tc.t, err)
		data, err := tc.store.Get(tc.t.Context(), info.Key)
		must(tc.t, err)
		w, err := shard.Decode(data)
		must(tc.t, err)
		out = append(out, w)
	}
	return out
}

// abandonAll makes workers answer the preflight and abandon all items.
func (tc *testCluster) abandonAll() { tc.set(func(item.Item, int) error { return errHang }) }

// TestDatasetChangesBetweenLeaders removes a row of the first window after the first leader has ended. The campaign has
// every row once, and its status describes the change.
func TestDatasetChangesBetweenLeaders(t *testing.T) {
	t.Parallel()
	const n, removed = 48, 17
	tc := newTestCluster(t, 0)
	tc.window = n
	tc.abandonAll()
	var changed atomic.Bool
	rows := filteredRows(hintedRows(n), func(row *manifest.Row) (bool, error) { return !changed.Load() || row.Index != removed, nil })
	withRows := func(c *coordinator.Config) { c.Rows = rows }
	id := tc.submit("changes", 0)
	stop := tc.leadWith(withRows)
	tc.awaitPhase(id, record.PhasePreflight)
	stop()
	changed.Store(true)
	tc.leadWith(withRows)
	tc.work(id)
	s := tc.await(id, "its last window", func(s record.CampaignStatus) bool {
		return s.Status.Complete && s.Status.Windows == len(tc.windows(id))
	})
	if s.Status.Counts.Items != 2*n {
		t.Errorf("%d items, want %d", s.Status.Counts.Items, 2*n)
	}
	if !strings.Contains(s.Status.Warning, "the dataset changed since 2") {
		t.Errorf("warning %q", s.Status.Warning)
	}
	seen, indices := map[string]int{}, map[int]bool{}
	for _, w := range tc.windows(id) {
		for _, it := range w.Items {
			seen[it.Image.Path+" "+it.Task]++
			indices[it.Index] = true
		}
	}
	for i := range n {
		for _, task := range []string{"hdr", "super_resolution"} {
			if key := fmt.Sprintf("%s/image%06d.png %s", tc.dir, i, task); seen[key] != 1 {
				t.Errorf("%s is in the manifest %d times", key, seen[key])
			}
		}
	}
	if len(indices) != 2*n || !indices[0] || !indices[2*n-1] {
		t.Errorf("%d distinct indices, want %d", len(indices), 2*n)
	}
}

// TestDatasetIsReordered reverses the dataset between two leaders: nothing is read until the old order is back.
func TestDatasetIsReordered(t *testing.T) {
	t.Parallel()
	const n = 48
	tc := newTestCluster(t, 0)
	tc.window = n
	tc.abandonAll()
	var reversed atomic.Bool
	order := false // of the present iteration
	rows := filteredRows(hintedRows(n), func(row *manifest.Row) (bool, error) {
		if row.Index == 0 {
			order = reversed.Load()
		}
		if order {
			row.Image = fmt.Sprintf("%s/image%06d.png", tc.dir, n-1-row.Index)
		}
		return true, nil
	})
	withRows := func(c *coordinator.Config) { c.Rows = rows }
	id := tc.submit("reordered", 0)
	stop := tc.leadWith(withRows)
	tc.awaitPhase(id, record.PhasePreflight)
	stop()
	reversed.Store(true)
	tc.leadWith(withRows)
	tc.work(id)
	s := tc.await(id, "a problem", func(s record.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.Contains(s.Status.Problem, "cannot be found") || s.Status.Phase != record.PhaseRunning || s.Status.Complete {
		t.Errorf("status %+v", s.Status)
	}
	reversed.Store(false)
	s = tc.await(id, "its last window", func(s record.CampaignStatus) bool { return s.Status.Complete })
	if s.Status.Counts.Items != 2*n || s.Status.Warning != "" || s.Status.Problem != "" {
		t.Errorf("status %+v", s.Status)
	}
}

// switchedSources fails with the error that is set.
type switchedSources struct {
	mu  sync.Mutex
	err error
}

func (s *switchedSources) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *switchedSources) get() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *switchedSources) Get(ctx context.Context, path string) ([]byte, error) {
	if err := s.get(); err != nil {
		return nil, err
	}
	return manifest.Files{}.Get(ctx, path)
}

// TestDatasetOutage makes the images or the listing unavailable, or refuses access to them, when a campaign begins. The
// campaign waits, also under another leader, and no item fails; preflight and canary run after the outage.
func TestDatasetOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		cause   error
		listing bool
	}{
		{"images unavailable", fmt.Errorf("%w: 503", storage.ErrUnavailable), false},
		{"listing refused", fmt.Errorf("%w: ExpiredToken", storage.ErrAccess), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 4)
			sources := &switchedSources{err: c.cause}
			configure := func(cfg *coordinator.Config) {
				if c.listing {
					cfg.Rows = filteredRows(manifest.Rows, func(*manifest.Row) (bool, error) { return true, sources.get() })
				} else {
					cfg.Sources = sources
				}
			}
			id := tc.submit("outage", 1)
			stop := tc.leadWith(configure)
			tc.work(id)
			waits := func(s record.CampaignStatus) bool {
				return strings.HasPrefix(s.Status.Problem, "waiting for the dataset since 2") && strings.Contains(s.Status.Problem, c.cause.Error())
			}
			if s := tc.await(id, "a problem", waits); s.Status.Phase != record.PhaseQueued || s.Status.Counts.Items > 0 {
				t.Errorf("status %+v", s.Status)
			}
			stop() // during the wait
			tc.leadWith(configure)
			tc.await(id, "a problem of the second leader", waits)
			sources.set(nil)
			s := tc.awaitPhase(id, record.PhaseFinished)
			if want := (record.Counts{Items: 8, Done: 8}); s.Status.Counts != want || s.Status.Problem != "" {
				t.Errorf("%+v, want %+v; problem %q", s.Status.Counts, want, s.Status.Problem)
			}
			if tc.started[record.IDPreflight] != 1 {
				t.Errorf("%d preflights", tc.started[record.IDPreflight])
			}
		})
	}
}

// TestPriorIsUnavailable submits two campaigns whose prior is in a bucket that does not answer. One is cancelled meanwhile.
func TestPriorIsUnavailable(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	sources := &switchedSources{err: fmt.Errorf("%w: 503", storage.ErrUnavailable)}
	spec, other := tc.spec("prior"), tc.spec("cancelled")
	for _, s := range []*manifest.Spec{spec, other} {
		s.Prior = "s3://priors/a.onnx"
		_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, s, board.Order{}, time.Now())
		must(t, err)
	}
	tc.leadWith(func(c *coordinator.Config) { c.Sources, c.Restart = sources, 10*time.Millisecond })
	tc.want(other.ID(""), record.WantCancel)
	if s := tc.awaitPhase(other.ID(""), record.PhaseCancelled); !strings.Contains(s.Campaign.Reason, "read prior s3://priors/a.onnx") {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
	s := tc.await(spec.ID(""), "a problem", func(s record.CampaignStatus) bool { return s.Status.Problem != "" })
	if !strings.HasPrefix(s.Status.Problem, "waiting for the prior since 2") || s.Campaign.Phase != record.PhaseQueued {
		t.Errorf("phase %s, problem %q", s.Campaign.Phase, s.Status.Problem)
	}
	sources.set(nil) // there is no such file
	if s = tc.awaitPhase(spec.ID(""), record.PhaseRejected); !strings.Contains(s.Campaign.Reason, "prior") {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
}

// TestWindowOfAnotherLeader suspends a leader while it reads its second window. Meanwhile another one stores that window
// from a dataset with one row more. The first leader must follow the stored window.
func TestWindowOfAnotherLeader(t *testing.T) {
	t.Parallel()
	const n, window, hidden = 50, 20, 30 // rows
	tc := newTestCluster(t, 0)
	tc.window = 2 * window
	tc.abandonAll()
	id := tc.submit("views", 0)
	reading, resume, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(reading) })
	lead := func(include func(row *manifest.Row) (bool, error)) (stop func()) {
		return tc.leadWith(func(c *coordinator.Config) { c.Rows = filteredRows(hintedRows(n), include) })
	}
	lead(func(row *manifest.Row) (bool, error) {
		if row.Index > window {
			begin()
			<-resume
		}
		return row.Index != hidden, nil
	})
	resumeOnce := sync.OnceFunc(func() { close(resume) })
	t.Cleanup(resumeOnce)
	tc.work(id)
	<-reading
	stop := lead(func(row *manifest.Row) (bool, error) {
		if row.Index > 2*window {
			<-end
		}
		return true, nil
	})
	tc.await(id, "its second window", func(record.CampaignStatus) bool { return len(tc.windows(id)) == 2 })
	close(end)
	stop()
	resumeOnce()
	tc.await(id, "its last window", func(s record.CampaignStatus) bool {
		return s.Status.Complete && s.Status.Windows == len(tc.windows(id))
	})
	item, seen := 0, map[string]int{}
	for i, w := range tc.windows(id) {
		if w.Number != i || w.Item != item {
			t.Errorf("window %d is number %d and begins with item %d, want %d", i, w.Number, w.Item, item)
		}
		item += w.Header.Items
		for _, it := range w.Items {
			if seen[it.Image.Path+" "+it.Task]++; seen[it.Image.Path+" "+it.Task] > 1 {
				t.Errorf("%s is in the manifest twice", it.Image.Path)
			}
		}
	}
	if len(seen) != 2*n {
		t.Errorf("%d items, want %d", len(seen), 2*n)
	}
}

// TestPreflightWaitsForSoundItem has no sound row in the first windows: preflight and canary run with a later window.
func TestPreflightWaitsForSoundItem(t *testing.T) {
	t.Parallel()
	const n, damaged = 40, 35
	tc := newTestCluster(t, 0)
	tc.window = 32
	rows := filteredRows(hintedRows(n), func(row *manifest.Row) (bool, error) {
		if row.Index < damaged {
			row.Err = errors.New("is damaged")
		}
		return true, nil
	})
	id := tc.submit("damaged", 2)
	tc.leadWith(func(c *coordinator.Config) { c.Rows = rows })
	s := tc.await(id, "failed items before the preflight", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhasePreflight && s.Status.Counts.Failed > 0
	})
	if s.Campaign.Released {
		t.Error("it is released before the preflight")
	}
	tc.work(id)
	s = tc.awaitPhase(id, record.PhaseFinished)
	if want := (record.Counts{Items: 2 * n, Done: 2 * (n - damaged), Failed: 2 * damaged}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
	if tc.started[record.IDPreflight] != 1 {
		t.Errorf("%d preflights", tc.started[record.IDPreflight])
	}
}

// TestDatasetWithoutSoundItem has no sound row at all: the campaign ends, and its status states that nothing was checked.
func TestDatasetWithoutSoundItem(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	tc.image("a", 1)
	id := tc.submit("none", 2)
	tc.leadWith(func(c *coordinator.Config) {
		c.Rows = filteredRows(manifest.Rows, func(row *manifest.Row) (bool, error) {
			row.Err = errors.New("is damaged")
			return true, nil
		})
	})
	s := tc.awaitPhase(id, record.PhaseFinished)
	if want := (record.Counts{Items: 2, Failed: 2}); s.Status.Counts != want || !strings.Contains(s.Status.Warning, "preflight and canary were skipped") {
		t.Errorf("status %+v", s.Status)
	}
}

// TestRunEndsWithUnavailableSource runs a campaign on one machine whose source does not answer: the run ends with the
// error, and no item fails.
func TestRunEndsWithUnavailableSource(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{storage.ErrUnavailable, storage.ErrAccess} {
		c := newLocalCampaign(t, t.TempDir(), "hdr")
		c.rows = filteredRows(hintedRows(10), func(row *manifest.Row) (bool, error) {
			if row.Index == 5 {
				return false, fmt.Errorf("read dataset: %w", cause)
			}
			return true, nil
		})
		r := c.start()
		if err := r.await(); !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
		r.wantCounts(record.Counts{})
	}
}

// hintedRows is a dataset of n rows that state digest and size of their images, so that no image is read.
func hintedRows(n int) func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
	return func(_ context.Context, d manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i := range n {
				row := manifest.Row{
					Index: i, Name: fmt.Sprintf("image%06d", i), Image: fmt.Sprintf("%s/image%06d.png", d.Path, i),
					ImageSHA256: fmt.Sprintf("%064x", i), Width: 32, Height: 32,
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
