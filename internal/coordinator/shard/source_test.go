package shard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// faultySources answers with one image, unless fault returns an error.
type faultySources struct {
	image []byte
	fault func(path string) error

	mu    sync.Mutex
	reads map[string]int
}

func (s *faultySources) Get(_ context.Context, path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[path]++
	if err := s.fault(path); err != nil {
		return nil, err
	}
	return s.image, nil
}

var (
	errDown   = fmt.Errorf("%w: 503", storage.ErrUnavailable)
	errDenied = fmt.Errorf("%w: ExpiredToken", storage.ErrAccess)
)

// faultyDataset makes the windows of 20 rows in a bucket, with two tasks each, and passes each trouble to wait.
type faultyDataset struct {
	sources *faultySources
	rows    shard.Rows
	waits   []error
	wait    shard.Wait // Config.Wait, if set
}

func newFaultyDataset(t *testing.T, fault func(path string) error) *faultyDataset {
	t.Helper()
	image, err := os.ReadFile(filepath.Join(writeImages(t, 1), "image00.png"))
	must(t, err)
	d := &faultyDataset{sources: &faultySources{image: image, fault: fault, reads: map[string]int{}}}
	d.rows = func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i := range 20 {
				if !yield(manifest.Row{Name: fmt.Sprintf("%02d", i), Image: fmt.Sprintf("s3://bucket/%02d.png", i)}, nil) {
					return
				}
			}
		}
	}
	return d
}

// windows returns the number of items and the failed results.
func (d *faultyDataset) windows(t *testing.T) (items int, failed []item.Result, err error) {
	t.Helper()
	s, err := shard.New(shard.Config{
		Spec: spec(t, "s3://bucket"), Prior: bundled(t), Sources: d.sources, Rows: d.rows, Items: 20, Parallel: 2, Delay: time.Microsecond, Wait: d.wait,
	})
	must(t, err)
	for w, err := range s.Windows(t.Context(), shard.Position{}) {
		if err != nil {
			return items, failed, err
		}
		items += len(w.Items)
		failed = append(failed, w.Failed...)
	}
	return items, failed, nil
}

// recordWaits sets a Wait that calls f with the number of the wait.
func (d *faultyDataset) recordWaits(f func(n int)) {
	d.wait = func(_ context.Context, cause error) error {
		d.waits = append(d.waits, cause)
		d.sources.mu.Lock()
		defer d.sources.mu.Unlock()
		f(len(d.waits))
		return nil
	}
}

// TestSourceOutage makes a bucket unavailable, or its keys invalid, in the middle of the second window, until the
// sharder has waited twice. No row fails.
func TestSourceOutage(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errDown, errDenied} {
		down := false
		d := newFaultyDataset(t, nil)
		d.sources.fault = func(path string) error {
			if down = down || path == "s3://bucket/14.png" && len(d.waits) == 0; down {
				return cause
			}
			return nil
		}
		d.recordWaits(func(n int) { down = n < 2 })
		items, failed, err := d.windows(t)
		if err != nil || items != 40 || len(failed) > 0 {
			t.Errorf("%v: %d items, %d failed, error %v", cause, items, len(failed), err)
		}
		if len(d.waits) != 2 || !errors.Is(d.waits[0], cause) || !strings.Contains(d.waits[0].Error(), "s3://bucket/1") {
			t.Errorf("waits %v", d.waits)
		}
	}
}

// TestSourceThatNeverAnswers has no Wait: the windows end with the error.
func TestSourceThatNeverAnswers(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errDown, errDenied} {
		d := newFaultyDataset(t, func(string) error { return cause })
		if items, failed, err := d.windows(t); !errors.Is(err, cause) || items+len(failed) > 0 {
			t.Errorf("%d items, %d failed, error %v, want %v", items, len(failed), err, cause)
		}
		if n := len(d.sources.reads); n > 8 {
			t.Errorf("%d files were read from a source that does not answer", n)
		}
	}
}

// TestRowIsRefusedAlone refuses one image of a bucket whose other images can be read: the row fails. An image that is
// missing twice fails its row.
func TestRowIsRefusedAlone(t *testing.T) {
	t.Parallel()
	for cause, reads := range map[error]int{errDown: 6, errDenied: 3, storage.ErrNotFound: 2} {
		d := newFaultyDataset(t, func(path string) error {
			if path == "s3://bucket/03.png" {
				return cause
			}
			return nil
		})
		d.recordWaits(func(int) {})
		items, failed, err := d.windows(t)
		if err != nil || items != 38 || len(failed) != 2 || failed[0].Item.Name != "03" || len(d.waits) > 0 {
			t.Errorf("%v: %d items, %d failed, %d waits, error %v", cause, items, len(failed), len(d.waits), err)
		}
		if n := d.sources.reads["s3://bucket/03.png"]; n != reads {
			t.Errorf("%v: %d attempts, want %d", cause, n, reads)
		}
	}
}

// TestOneLieAboutARow: a server that calls a file missing once, or sends other bytes once, fails no row. The second look is some time
// after the first.
func TestOneLieAboutARow(t *testing.T) {
	t.Parallel()
	const path = "s3://bucket/03.png"
	for name, fault := range map[string]error{"missing": storage.ErrNotFound, "no image": nil} {
		d := newFaultyDataset(t, func(string) error { return nil })
		image := d.sources.image
		d.sources.fault = func(p string) error {
			d.sources.image = image
			if p != path || d.sources.reads[path] > 1 {
				return nil
			}
			d.sources.image = []byte("<html>busy</html>")
			return fault
		}
		items, failed, err := d.windows(t)
		if err != nil || items != 40 || len(failed) > 0 || d.sources.reads[path] != 2 {
			t.Errorf("%s: %d items, failed %v, %d reads, error %v", name, items, failed, d.sources.reads[path], err)
		}
	}
}

// TestFirstRowsAreRefused refuses the first images: their rows fail, although more of them than Parallel fail in succession
// before any image can be read. The sharder may wait until it has found a witness.
func TestFirstRowsAreRefused(t *testing.T) {
	t.Parallel()
	d := newFaultyDataset(t, func(path string) error {
		if path < "s3://bucket/08.png" {
			return errDenied
		}
		return nil
	})
	d.recordWaits(func(int) {})
	items, failed, err := d.windows(t)
	if err != nil || items != 24 || len(failed) != 16 {
		t.Errorf("%d items, %d failed, error %v", items, len(failed), err)
	}
}

// TestOverloadedSource answers one of eight requests only, for each file at random: no row fails.
func TestOverloadedSource(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	d := newFaultyDataset(t, func(string) error {
		if random.IntN(8) > 0 {
			return errDown
		}
		return nil
	})
	d.recordWaits(func(int) {})
	items, failed, err := d.windows(t)
	if err != nil || items != 40 || len(failed) > 0 {
		t.Errorf("%d items, %d failed, error %v", items, len(failed), err)
	}
}

// TestKeysExpireDuringConfirmation refuses one image, and all images from the confirmation on, until the sharder has
// waited: only the one image fails.
func TestKeysExpireDuringConfirmation(t *testing.T) {
	t.Parallel()
	d := newFaultyDataset(t, nil)
	d.sources.fault = func(path string) error {
		if path == "s3://bucket/03.png" || d.sources.reads["s3://bucket/03.png"] > 1 && len(d.waits) < 3 {
			return errDenied
		}
		return nil
	}
	d.recordWaits(func(int) {})
	items, failed, err := d.windows(t)
	if err != nil || items != 38 || len(failed) != 2 || len(d.waits) != 3 {
		t.Errorf("%d items, %d failed, %d waits, error %v", items, len(failed), len(d.waits), err)
	}
}

// TestListingIsInterrupted ends the listing in the middle of a window, with an error of the environment or because the list
// was written meanwhile.
func TestListingIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errDown, storage.ErrChanged} {
		for _, row := range []int{3, 14} {
			t.Run(fmt.Sprint(fault, " in row ", row), func(t *testing.T) {
				t.Parallel()
				interruptListing(t, fault, row)
			})
		}
	}
}

func interruptListing(t *testing.T, fault error, at int) {
	d := newFaultyDataset(t, func(string) error { return nil })
	all, broken := d.rows, 0
	d.rows = func(ctx context.Context, dataset manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			n := 0
			for row, err := range all(ctx, dataset, skipped) {
				if n++; n == at && broken < 3 {
					broken++
					// As package manifest reports a list whose file cannot be read.
					yield(manifest.Row{}, fmt.Errorf("%w: %w", manifest.ErrBadList, fault))
					return
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
	d.recordWaits(func(int) {})
	items, failed, err := d.windows(t)
	if err != nil || items != 40 || len(failed) > 0 || len(d.waits) != 3 {
		t.Errorf("%d items, %d failed, %d waits, error %v", items, len(failed), len(d.waits), err)
	}
	broken, d.wait = 0, nil
	if _, _, err := d.windows(t); !errors.Is(err, fault) {
		t.Errorf("without a Wait: error %v", err)
	}
}

// TestDatasetIsGone removes the dataset after the first window: the sharder waits until it is back. A dataset that was
// never there ends the windows.
func TestDatasetIsGone(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{manifest.ErrNoDataset, manifest.ErrEmptyDataset, manifest.ErrBadList} {
		d := newFaultyDataset(t, func(string) error { return nil })
		all := d.rows
		d.rows = func(ctx context.Context, dataset manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
			gone, interrupted := len(d.waits) == 1, len(d.waits) == 0
			return func(yield func(manifest.Row, error) bool) {
				for row, err := range all(ctx, dataset, skipped) {
					switch {
					case gone:
						err = cause
					case interrupted && row.Name == "15":
						err = errDown
					}
					if !yield(row, err) || err != nil {
						return
					}
				}
			}
		}
		d.recordWaits(func(int) {})
		items, failed, err := d.windows(t)
		if err != nil || items != 40 || len(failed) > 0 || len(d.waits) != 2 || !errors.Is(d.waits[1], cause) {
			t.Errorf("%d items, %d failed, waits %v, error %v", items, len(failed), d.waits, err)
		}
	}
}

// TestDatasetIsMissingFromTheStart does not wait for a dataset that was never there.
func TestDatasetIsMissingFromTheStart(t *testing.T) {
	t.Parallel()
	d := newFaultyDataset(t, func(string) error { return nil })
	d.rows = func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) { yield(manifest.Row{}, manifest.ErrNoDataset) }
	}
	d.wait = func(_ context.Context, cause error) error { return fmt.Errorf("waits for %w", cause) }
	if _, _, err := d.windows(t); !errors.Is(err, manifest.ErrNoDataset) || strings.Contains(err.Error(), "waits") {
		t.Errorf("error %v", err)
	}
}

// TestSourcesAreIndependent refuses all files of one source for two waits. The other sources answer, and no row fails: they
// are no witness of the refused source.
func TestSourcesAreIndependent(t *testing.T) {
	t.Parallel()
	places := []string{
		"s3://one/%02d.png?endpoint=https://one", "s3://two/%02d.png?endpoint=https://two", "https://host/%02d.png", "/data/%02d.png", "file:///other/%02d.png",
	}
	for _, down := range places[:3] {
		prefix, _, _ := strings.Cut(down, "/%")
		d := newFaultyDataset(t, nil)
		d.rows = func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
			return func(yield func(manifest.Row, error) bool) {
				for i := range 20 {
					if !yield(manifest.Row{Name: fmt.Sprintf("%02d", i), Image: fmt.Sprintf(places[i%len(places)], i)}, nil) {
						return
					}
				}
			}
		}
		d.sources.fault = func(path string) error {
			if strings.HasPrefix(path, prefix) && len(d.waits) < 2 {
				return errDenied
			}
			return nil
		}
		d.recordWaits(func(int) {})
		items, failed, err := d.windows(t)
		if err != nil || items != 40 || len(failed) > 0 || len(d.waits) != 2 {
			t.Errorf("%s: %d items, %d failed, %d waits, error %v", down, items, len(failed), len(d.waits), err)
		}
	}
	// Paths and file addresses are one source: each is a witness for the other.
	d := newFaultyDataset(t, func(path string) error {
		if path == "file:///other/x.png" {
			return errDenied
		}
		return nil
	})
	d.rows = fixedRows(manifest.Row{Name: "a", Image: "/data/a.png"}, manifest.Row{Name: "x", Image: "file:///other/x.png"})
	d.recordWaits(func(int) {})
	if items, failed, err := d.windows(t); err != nil || items != 2 || len(failed) != 2 || len(d.waits) > 0 {
		t.Errorf("%d items, %d failed, %d waits, error %v", items, len(failed), len(d.waits), err)
	}
}

// TestRowOfTwoSources has an image in a bucket and a mask on a web server. Both are down, one after the other.
func TestRowOfTwoSources(t *testing.T) {
	t.Parallel()
	d := newFaultyDataset(t, nil)
	d.rows = fixedRows(manifest.Row{Name: "a", Image: "s3://bucket/a.png", Overrides: manifest.Overrides{Task: "inpaint_random", Mask: "https://host/m.png"}})
	d.sources.fault = func(path string) error {
		if n := len(d.waits); n < 2 && path == "s3://bucket/a.png" || n < 4 && path == "https://host/m.png" {
			return errDown
		}
		return nil
	}
	d.recordWaits(func(int) {})
	items, failed, err := d.windows(t)
	if err != nil || items != 1 || len(failed) > 0 || len(d.waits) != 4 {
		t.Errorf("%d items, %d failed, waits %v, error %v", items, len(failed), d.waits, err)
	}
	// The wait for the second source ends.
	d.waits = nil
	d.wait = func(_ context.Context, cause error) error {
		if d.waits = append(d.waits, cause); len(d.waits) == 3 {
			return context.Canceled
		}
		return nil
	}
	if _, _, err := d.windows(t); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after %d waits", err, len(d.waits))
	}
}
