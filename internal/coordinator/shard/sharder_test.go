package shard_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
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
	s.Tasks = []item.Task{{Name: "hdr"}, {Name: "super_resolution"}}
	must(t, s.Validate(manifest.Catalogue{}))
	return s
}

var openBundled = sync.OnceValues(func() (*prior.Prior, error) { return prior.Open(prior.Bundled) })

func bundled(t *testing.T) *prior.Description {
	t.Helper()
	p, err := openBundled()
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
	seen, next, rows := map[int]bool{}, shard.Position{}, 0
	for i, w := range windows {
		if w.Number != next.Number || w.Row != next.Row || w.Item != next.Item {
			t.Errorf("window %d is %+v, want it to begin at %+v", i, w.Header, next)
		}
		if w.Number != i || w.Row != rows {
			t.Errorf("window %d is %+v, want %d rows before it", i, w.Header, rows)
		}
		rows += w.Rows
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

// A row with more items than a window has a window of its own.
func TestRowIsNotDivided(t *testing.T) {
	t.Parallel()
	windows := collect(t, newSharder(t, writeImages(t, 2), 1, nil), shard.Position{})
	if len(windows) != 3 || windows[0].Rows != 1 || windows[0].Header.Items != 2 {
		t.Errorf("%d windows, the first is %+v", len(windows), windows[0].Header)
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
		data, err := w.Encode()
		must(t, err)
		back, err := shard.Decode(data)
		must(t, err)
		again, err := back.Encode()
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
	if same, err := s.Again(t.Context(), before, shard.Position{}); err != nil || !reflect.DeepEqual(same, before) {
		t.Errorf("read again: %+v, error %v", same, err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "image01.png"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), good, 0o644))
	after, err := s.Again(t.Context(), before, shard.Position{})
	must(t, err)
	if len(before.Failed) != 2 || len(after.Failed) != 0 || len(after.Items) != 6 {
		t.Errorf("%d failed before, %d after, with %d items", len(before.Failed), len(after.Failed), len(after.Items))
	}
	must(t, os.Remove(filepath.Join(dir, "broken.png")))
	if _, err := s.Again(t.Context(), before, shard.Position{}); !errors.Is(err, shard.ErrMoved) || !strings.Contains(err.Error(), "it has 2 rows, it had 3") {
		t.Errorf("after the loss of a row: error %v", err)
	}
}

func TestRowsThatStateTheirImageAreNotRead(t *testing.T) {
	const digest = "00000000000000000000000000000000000000000000000000000000000000aa"
	rows := func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
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

// TestFirstWindowIsSmall doubles the windows from First on, up to Items.
func TestFirstWindowIsSmall(t *testing.T) {
	t.Parallel()
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("r%02d", i)
	}
	s, err := shard.New(shard.Config{
		Spec: spec(t, t.TempDir()), Prior: bundled(t), Sources: manifest.Files{}, Rows: listRows(&names), Items: 16, First: 2,
	})
	must(t, err)
	var sizes []int
	for _, w := range collect(t, s, shard.Position{}) {
		sizes = append(sizes, w.Header.Items)
	}
	if want := []int{2, 4, 8, 16, 16, 14}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("windows of %d items, want %d", sizes, want)
	}
}

// fixedRows is a dataset of these rows.
func fixedRows(rows ...manifest.Row) shard.Rows {
	return func(context.Context, manifest.Dataset, func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i, row := range rows {
				row.Index = i
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// TestStatedDigest: a row that states the digest without the size is read, and the digest is compared with its image alone.
func TestStatedDigest(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 2)
	image, other := filepath.Join(dir, "image00.png"), filepath.Join(dir, "image01.png")
	data, err := os.ReadFile(image)
	must(t, err)
	digest := regular.SHA256(data)
	for name, c := range map[string]struct {
		row    manifest.Row
		reason string
	}{
		"no size":    {manifest.Row{Image: image, ImageSHA256: digest}, ""},
		"no width":   {manifest.Row{Image: image, ImageSHA256: digest, Height: 32}, ""},
		"no height":  {manifest.Row{Image: image, ImageSHA256: digest, Width: 32}, ""},
		"with mask":  {manifest.Row{Image: image, ImageSHA256: digest, Width: 32, Height: 32, Overrides: manifest.Overrides{Task: "inpaint_random", Mask: other}}, ""},
		"wrong file": {manifest.Row{Image: other, ImageSHA256: digest}, "the row states " + digest[:12]},
	} {
		c.row.Name = "r"
		w := collect(t, newSharder(t, dir, 100, fixedRows(c.row)), shard.Position{})[0]
		switch {
		case c.reason != "" && (len(w.Failed) != 2 || !strings.Contains(w.Failed[0].Reason, c.reason)):
			t.Errorf("%s: items %+v, failed %+v", name, w.Items, w.Failed)
		case c.reason == "" && (len(w.Items) != len(w.Failed)+w.Header.Items || w.Items[0].Image.SHA256 != digest || w.Items[0].Width != 32 || w.Items[0].Height != 32):
			t.Errorf("%s: items %+v, failed %+v", name, w.Items, w.Failed)
		}
	}
}

// TestTaskFiles: the mask of a task has its digest in the items of the task alone, also for rows that need no read; reading resumes between such rows,
// and a file that does not exist fails the rows.
func TestTaskFiles(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 3)
	mask := filepath.Join(dir, "image02.png")
	data, err := os.ReadFile(mask)
	must(t, err)
	digest := regular.SHA256(data)
	var rows []manifest.Row
	for i := range 3 {
		rows = append(rows, manifest.Row{Name: fmt.Sprint("r", i), Image: filepath.Join(dir, fmt.Sprintf("image%02d.png", i)), ImageSHA256: strings.Repeat("ab", 32), Width: 32, Height: 32})
	}
	rows[0].ImageSHA256, rows[1].ImageSHA256 = "", ""
	rows[2].ImageSHA256 = digest
	sharder := func(file string) *shard.Sharder {
		s := spec(t, dir)
		s.Tasks = []item.Task{{Name: "inpaint_box", Mask: file}, {Name: "hdr"}}
		out, err := shard.New(shard.Config{Spec: s, Prior: bundled(t), Sources: manifest.Files{}, Rows: fixedRows(rows...), Items: 2})
		must(t, err)
		return out
	}
	windows := collect(t, sharder(mask), shard.Position{})
	if len(windows) != 3 {
		t.Fatalf("%d windows, want 3", len(windows))
	}
	for i, w := range windows {
		if len(w.Items) != 2 || w.Items[0].Mask == nil || w.Items[0].Mask.SHA256 != digest || !w.Items[0].FromTask || w.Items[1].Mask != nil || w.Items[1].FromTask {
			t.Errorf("window %d: items %+v, failed %+v", i, w.Items, w.Failed)
		}
	}
	rest := collect(t, sharder(mask), windows[0].Next(shard.Position{}))
	if len(rest) != 2 || rest[0].Changed != "" || rest[0].Items[0].ID != windows[1].Items[0].ID {
		t.Errorf("resumed with %d windows: %+v", len(rest), rest[0])
	}
	for _, w := range collect(t, sharder(filepath.Join(dir, "missing.png")), shard.Position{}) {
		if len(w.Items) != 0 || len(w.Failed) != 2 || !strings.Contains(w.Failed[0].Reason, "missing.png") {
			t.Errorf("missing mask: items %+v, failed %+v", w.Items, w.Failed)
		}
	}
}

// TestStoredMeasurements computes the image size of measurements without images.
func TestStoredMeasurements(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 0)
	write := func(name string, shape ...int) string {
		n := 1
		for _, k := range shape {
			n *= k
		}
		data, err := raster.EncodeNPY(shape, make([]float32, n))
		must(t, err)
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, data, 0o600))
		return path
	}
	colour, grey, broken := write("colour.npy", 3, 8, 16), write("grey.npy", 1, 8, 16), filepath.Join(dir, "broken.png")
	two := []item.Task{{Name: "hdr"}, {Name: "super_resolution"}}
	one := []item.Task{{Name: "super_resolution", Params: map[string]float64{"factor": 2}}}
	for name, c := range map[string]struct {
		tasks         []item.Task
		task          string
		params        map[string]float64
		path          string
		width, height int
		reason        string
	}{
		"task of the row":             {tasks: two, task: "super_resolution", path: colour, width: 64, height: 32},
		"first task":                  {tasks: two, task: "hdr", path: colour, width: 16, height: 8},
		"only task":                   {tasks: one, path: colour, width: 32, height: 16},
		"parameter of the row":        {tasks: one, params: map[string]float64{"factor": 8}, path: colour, width: 128, height: 64},
		"no task":                     {tasks: two, path: colour, reason: "a measurement belongs to one task"},
		"one channel":                 {tasks: one, path: grey, reason: "it has 1 channels, the prior has 3"},
		"no tensor":                   {tasks: one, path: broken, reason: "read " + broken},
		"parameter that is too large": {tasks: one, params: map[string]float64{"factor": 1e6}, path: colour, reason: "factor"},
	} {
		row := manifest.Row{Name: "y", Measurement: c.path, Overrides: manifest.Overrides{Task: c.task, Params: c.params}}
		campaign := spec(t, dir)
		campaign.Tasks = c.tasks
		s, err := shard.New(shard.Config{Spec: campaign, Prior: bundled(t), Sources: manifest.Files{}, Rows: fixedRows(row)})
		must(t, err)
		w := collect(t, s, shard.Position{})[0]
		if c.reason != "" {
			if len(w.Items) > 0 || len(w.Failed) == 0 || !strings.Contains(w.Failed[0].Reason, c.reason) {
				t.Errorf("%s: items %+v, failed %+v", name, w.Items, w.Failed)
			}
			continue
		}
		if len(w.Items) != 1 || w.Items[0].Width != c.width || w.Items[0].Height != c.height || w.Items[0].Image != nil {
			t.Errorf("%s: items %+v, failed %+v", name, w.Items, w.Failed)
		}
	}
	// A measurement beside an image takes the size of the image.
	image := filepath.Join(writeImages(t, 1), "image00.png")
	w := collect(t, newSharder(t, dir, 100, fixedRows(manifest.Row{Name: "y", Image: image, Measurement: colour})), shard.Position{})[0]
	if len(w.Items) != 2 || w.Items[0].Width != 32 || w.Items[0].Measurement == nil {
		t.Errorf("with an image: items %+v, failed %+v", w.Items, w.Failed)
	}
}

// stored compresses lines as a window's file.
func stored(t *testing.T, lines ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write([]byte(strings.Join(lines, "\n") + "\n"))
	must(t, err)
	must(t, zip.Close())
	return out.Bytes()
}

// TestDecodeChecksCounts reads files whose header and entries differ in number.
func TestDecodeChecksCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header string
		lines  int
		sound  bool
	}{
		{`{"schema":1,"items":0}`, 0, true},
		{`{"schema":1,"items":2}`, 2, true},
		{`{"schema":1,"items":2,"failures":2}`, 2, true},
		{`{"schema":1,"items":2,"failures":3}`, 3, false},
		{`{"schema":1,"items":2,"failures":-1}`, 2, false},
		{`{"schema":1,"items":2}`, 1, false},
		{`{"schema":1,"items":2,"failures":1}`, 1, false},
		{`{"schema":1,"items":2}`, 3, false},
		{`{"schema":0,"items":0}`, 0, false},
		{fmt.Sprintf(`{"schema":%d,"items":0}`, record.Schema), 0, true},
		{fmt.Sprintf(`{"schema":%d,"items":0}`, record.Schema+1), 0, false},
	} {
		lines := []string{c.header}
		for range c.lines {
			lines = append(lines, "{}")
		}
		w, err := shard.Decode(stored(t, lines...))
		if (err == nil) != c.sound || c.sound && len(w.Items)+len(w.Failed) != c.lines {
			t.Errorf("%s with %d entries: %+v, error %v", c.header, c.lines, w, err)
		}
	}
}
