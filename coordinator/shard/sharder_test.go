package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeImages puts n images of different bytes into a new directory, and one file that is
// named like an image and is none, which sorts first.
func writeImages(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		img := &raster.Image{Channels: 3, Height: 32, Width: 32, Pix: make([]float32, 3*32*32)}
		for k := range img.Pix {
			img.Pix[k] = float32((k*7+i*13)%255)/127.5 - 1
		}
		data, err := raster.EncodePNG(img)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("image%02d.png", i)), data, 0o644))
	}
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), []byte("no image"), 0o644))
	return dir
}

// spec is a campaign of two tasks.
func spec(t *testing.T, dir string) *manifest.Spec {
	t.Helper()
	s := manifest.Default()
	s.Name, s.Dataset.Path, s.Dataset.Size = "test", dir, 32
	s.Tasks = []manifest.TaskSpec{{Name: "hdr"}, {Name: "super_resolution"}}
	must(t, s.Validate(shard.Vocabulary()))
	return s
}

func bundled(t *testing.T) *prior.Description {
	t.Helper()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	return &p.Description
}

func newSharder(t *testing.T, dir string, items int, rows shard.Rows) *shard.Sharder {
	t.Helper()
	s, err := shard.New(shard.Config{
		Spec: spec(t, dir), Prior: bundled(t), Sources: manifest.Files{}, Rows: rows, Items: items,
		Now: func() time.Time { return time.Unix(1e9, 0) },
	})
	must(t, err)
	return s
}

func collect(t *testing.T, s *shard.Sharder, from shard.Position) []*shard.Window {
	t.Helper()
	var all []*shard.Window
	for w, err := range s.Windows(t.Context(), from) {
		must(t, err)
		all = append(all, w)
	}
	return all
}

func TestWindowsCoverTheManifestOnce(t *testing.T) {
	dir := writeImages(t, 6) // 7 rows of 2 items
	windows := collect(t, newSharder(t, dir, 4, nil), shard.Position{})
	if len(windows) != 4 {
		t.Fatalf("%d windows, want 4", len(windows))
	}
	seen, next := map[int]bool{}, shard.Position{}
	for i, w := range windows {
		if w.Number != next.Number || w.Row != next.Row || w.Item != next.Item {
			t.Errorf("window %d is %+v, want it to begin at %+v", i, w.Header, next)
		}
		if next = w.Next(next); w.Last != (i == len(windows)-1) {
			t.Errorf("window %d: Last is %v", i, w.Last)
		}
		for k, it := range w.Items {
			seen[it.Index] = true
			if k > 0 && w.Items[k-1].Task > it.Task {
				t.Errorf("window %d is not in the order of tasks", i)
			}
		}
		for _, r := range w.Failed {
			seen[r.Item.Index] = true
			if r.Item.Name != "broken" {
				t.Errorf("%s failed: %s", r.Item.Name, r.Reason)
			}
		}
	}
	if next.Item != 14 || len(seen) != 14 {
		t.Errorf("the windows end at item %d and have %d, want 14", next.Item, len(seen))
	}
}

func TestWindowsResumeAtPosition(t *testing.T) {
	dir := writeImages(t, 6)
	whole := collect(t, newSharder(t, dir, 4, nil), shard.Position{})
	rest := collect(t, newSharder(t, dir, 4, nil), whole[1].Next(whole[0].Next(shard.Position{})))
	if !reflect.DeepEqual(rest, whole[2:]) {
		t.Error("windows from the middle differ from those of a whole pass")
	}
}

func TestStoredWindowIsTheSame(t *testing.T) {
	for _, w := range collect(t, newSharder(t, writeImages(t, 2), 100, nil), shard.Position{}) {
		data, items, err := w.Encode()
		must(t, err)
		if len(items) != len(w.Items) {
			t.Errorf("%d items are encoded, want %d", len(items), len(w.Items))
		}
		back, err := shard.Decode(data)
		must(t, err)
		again, _, err := back.Encode()
		must(t, err)
		if back.Header != w.Header || !bytes.Equal(again, data) {
			t.Errorf("window is read as %+v, was %+v", back.Header, w.Header)
		}
		for cut := range len(data) {
			if _, err := shard.Decode(data[:cut]); err == nil {
				t.Fatalf("a window that is cut to %d of %d bytes is read", cut, len(data))
			}
		}
	}
}

func TestRepairedRowGetsItems(t *testing.T) {
	dir := writeImages(t, 2)
	s := newSharder(t, dir, 100, nil)
	before := collect(t, s, shard.Position{})[0]
	good, err := os.ReadFile(filepath.Join(dir, "image01.png"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), good, 0o644))
	after, err := s.Again(t.Context(), before)
	must(t, err)
	if len(before.Failed) != 2 || len(after.Failed) != 0 || len(after.Items) != 6 {
		t.Errorf("%d failed before, %d after, with %d items", len(before.Failed), len(after.Failed), len(after.Items))
	}
	must(t, os.Remove(filepath.Join(dir, "broken.png")))
	if _, err := s.Again(t.Context(), before); err == nil {
		t.Error("a dataset that has lost a row is taken for the same")
	}
}

func TestRowsThatStateTheirImageAreNotRead(t *testing.T) {
	const digest = "00000000000000000000000000000000000000000000000000000000000000aa"
	rows := func(context.Context, manifest.Dataset, func(string)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			yield(manifest.Row{Name: "far", Image: "/nowhere/far.png", ImageSHA256: digest, Width: 50, Height: 40}, nil)
		}
	}
	w := collect(t, newSharder(t, t.TempDir(), 100, rows), shard.Position{})[0]
	if len(w.Items) != 2 || w.Items[0].Image.SHA256 != digest || w.Items[0].Width != 32 {
		t.Errorf("items %+v, failed %+v", w.Items, w.Failed)
	}
}

func TestWindowsEndWithTheDatasetsError(t *testing.T) {
	s := newSharder(t, filepath.Join(t.TempDir(), "none"), 100, nil)
	var last error
	for _, err := range s.Windows(t.Context(), shard.Position{}) {
		last = err
	}
	if !errors.Is(last, manifest.ErrNoDataset) {
		t.Errorf("error %v, want ErrNoDataset", last)
	}
}
