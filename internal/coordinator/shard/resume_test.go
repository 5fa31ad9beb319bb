package shard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// listRows is a dataset with one row per name. A name a/2 is the image a with the noise level 0.2. The rows state digest
// and size, so that no file is read.
func listRows(names *[]string) shard.Rows {
	return func(_ context.Context, d manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return manifest.Number(context.Background(), d, func(emit func(manifest.Row) error) error {
			for _, name := range *names {
				image, level, _ := strings.Cut(name, "/")
				row := manifest.Row{Name: image, Image: "/data/" + image + ".png", Width: 32, Height: 32}
				row.ImageSHA256 = fmt.Sprintf("%064x", []byte(image))
				if level != "" {
					sigma := item.Sigma(level[0]-'0') / 10
					row.Overrides.Sigma = &sigma
				}
				if err := emit(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// rowsOf returns the rows of windows in the form of listRows.
func rowsOf(windows []*shard.Window) []string {
	var out []string
	for _, w := range windows {
		items := slices.Clone(w.Items)
		slices.SortFunc(items, func(a, b item.Item) int { return a.Index - b.Index })
		for i, it := range items {
			if i%2 == 0 { // two tasks
				name := strings.TrimSuffix(filepath.Base(it.Image.Path), ".png")
				if it.Sigma != 0.05 {
					name += fmt.Sprintf("/%d", int(10*it.Sigma+0.5))
				}
				out = append(out, name)
			}
		}
	}
	return out
}

// TestResumeInChangedDataset stores the first two windows of two rows each, changes the dataset, and resumes.
func TestResumeInChangedDataset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		before, after  string
		rest           string
		changed, moved bool
	}{
		{name: "same", before: "a b c d e f", after: "a b c d e f", rest: "e f"},
		{name: "removed before the position", before: "a b c d e f", after: "a c d e f", rest: "e f", changed: true},
		{name: "first row removed", before: "a b c d e f", after: "b c d e f", rest: "e f", changed: true},
		{name: "removed after the position", before: "a b c d e f", after: "a b c d f", rest: "f"},
		{name: "inserted before the position", before: "a b c d e f", after: "a aa b c d e f", rest: "e f", changed: true},
		{name: "inserted after the position", before: "a b c d e f", after: "a b c d da e f", rest: "da e f"},
		{name: "last row removed", before: "a b c d e f", after: "a b c e f", rest: "e f", changed: true},
		{name: "last rows removed and others inserted", before: "a b c d e f", after: "a b bb e f", rest: "bb e f", changed: true},
		{name: "one removed and one inserted", before: "a b c d e f", after: "a bb c d e f", rest: "e f", changed: true},
		{name: "rest removed", before: "a b c d e f", after: "a b c d", rest: ""},
		{name: "shorter than the position", before: "a b c d e f", after: "a c", rest: "", changed: true},
		{name: "setting changed before the position", before: "a b c d e", after: "a b/3 c d e", rest: "e", changed: true},
		{name: "setting changed after the position", before: "a b c d e", after: "a b c d e/3", rest: "e/3"},
		{name: "all rows replaced", before: "a b c d e f", after: "u v w x y z", moved: true},
		{name: "reversed", before: "a b c d e f", after: "f e d c b a", moved: true},
		{name: "last row moved to the front", before: "a b c d e f", after: "d a b c e f", moved: true},
		{name: "first row moved to the end", before: "a b c d e f", after: "b c d e f a", moved: true},
		{name: "equal images", before: "a a/1 a/2 b b/1 b/2", after: "a a/1 a/2 b b/1 b/2", rest: "b/1 b/2"},
		{name: "equal images, one removed", before: "a a/1 b b/1 c d", after: "a b b/1 c d", moved: true},
		{name: "equal images, one inserted", before: "a a/1 b b/1 c d", after: "a a/1 a/2 b b/1 c d", moved: true},
		{name: "equal rows", before: "a a b b b c", after: "a a b b b c", rest: "b c"},
		{name: "equal image inserted before its row", before: "a b c d e f", after: "a c/1 b c d e f", moved: true},
		{name: "equal rows in turns, one removed", before: "a b a b c d", after: "a b b c d", moved: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			names := strings.Fields(c.before)
			s := newSharder(t, t.TempDir(), 4, listRows(&names))
			windows := collect(t, s, shard.Position{})
			at := shard.Position{}
			for _, w := range windows[:2] {
				at = w.Next(at)
			}
			names = strings.Fields(c.after)
			var rest []*shard.Window
			var last error
			for w, err := range newSharder(t, t.TempDir(), 4, listRows(&names)).Windows(t.Context(), at) {
				if err != nil {
					last = err
					break
				}
				rest = append(rest, w)
			}
			if errors.Is(last, shard.ErrMoved) != c.moved || last != nil && !c.moved {
				t.Fatalf("error %v, want ErrMoved: %v", last, c.moved)
			}
			if c.moved {
				return
			}
			if got := strings.Join(rowsOf(rest), " "); got != c.rest {
				t.Errorf("resumed with %q, want %q", got, c.rest)
			}
			if got := rest[0].Changed; (got != "") != c.changed {
				t.Errorf("change is %q, want one: %v", got, c.changed)
			}
			for _, w := range rest {
				if w.Number != at.Number || w.Row != at.Row || w.Item != at.Item {
					t.Errorf("window %+v does not follow %+v", w.Header, at)
				}
				at = w.Next(at)
			}
			// The next resumption finds the dataset unchanged.
			again := collect(t, newSharder(t, t.TempDir(), 4, listRows(&names)), at)
			if n := len(rowsOf(again)); n > 0 || again[0].Changed != "" {
				t.Errorf("the end of the dataset has %d more rows; change %q", n, again[0].Changed)
			}
		})
	}
}

// TestResumeInLargeDataset removes the last rows that were read, up to and beyond TailRows. The rows before the last window
// are in the tail too.
func TestResumeInLargeDataset(t *testing.T) {
	t.Parallel()
	const rows, read = 5500, 5000
	all := make([]string, rows)
	for i := range all {
		all[i] = fmt.Sprintf("r%04d", i)
	}
	names := all
	campaign := spec(t, t.TempDir())
	campaign.Tasks = campaign.Tasks[:1]
	s, err := shard.New(shard.Config{Spec: campaign, Prior: bundled(t), Sources: manifest.Files{}, Rows: listRows(&names), Items: 500})
	must(t, err)
	at := shard.Position{}
	for _, w := range collect(t, s, at)[:read/500] {
		at = w.Next(at)
	}
	if at.Row != read {
		t.Fatalf("the position is %+v", at)
	}
	for removed, moved := range map[int]bool{0: false, 700: false, shard.TailRows - 1: false, shard.TailRows: true} {
		names = append(slices.Clone(all[1:read-removed]), all[read:]...) // without the first row too
		var first *shard.Window
		var last error
		for w, err := range s.Windows(t.Context(), at) {
			if last = err; first == nil {
				first = w
			}
		}
		if errors.Is(last, shard.ErrMoved) != moved || last != nil && !moved {
			t.Errorf("%d rows removed: error %v", removed, last)
		}
		if !moved && (first == nil || first.Rows != rows-read || first.Items[0].Name != all[read]) {
			t.Errorf("%d rows removed: resumed with %+v", removed, first)
		}
	}
}

// TestResumeAfterUnreadableLine: a line that cannot be read has no files, and its name is its digest.
func TestResumeAfterUnreadableLine(t *testing.T) {
	t.Parallel()
	row := func(name string) manifest.Row {
		if strings.HasPrefix(name, "line") {
			return manifest.Row{Name: name, Err: errors.New("not valid JSON")}
		}
		return manifest.Row{Name: name, Image: "/data/" + name, ImageSHA256: fmt.Sprintf("%064x", []byte(name)), Width: 32, Height: 32}
	}
	list := func(names string) shard.Rows {
		var rows []manifest.Row
		for _, name := range strings.Fields(names) {
			rows = append(rows, row(name))
		}
		return fixedRows(rows...)
	}
	first := collect(t, newSharder(t, t.TempDir(), 4, list("line-1 b c d")), shard.Position{})[0]
	for after, changed := range map[string]bool{"line-1 b c d": false, "line-2 b c d": true, "a b c d": true} {
		rest := collect(t, newSharder(t, t.TempDir(), 4, list(after)), first.Next(shard.Position{}))
		if (rest[0].Changed != "") != changed || rest[0].Items[0].Name != "c" {
			t.Errorf("%s: resumed at %s, change %q", after, rest[0].Items[0].Name, rest[0].Changed)
		}
	}
}

// TestResumeWhenRowsAreBack reverses the dataset for the first of the passes only.
func TestResumeWhenRowsAreBack(t *testing.T) {
	t.Parallel()
	names := strings.Fields("a b c d")
	reversed := false
	rows := func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		now := slices.Clone(names)
		if reversed {
			slices.Reverse(now)
		}
		reversed = false
		return listRows(&now)(ctx, d, skipped)
	}
	s := newSharder(t, t.TempDir(), 4, rows)
	first := collect(t, s, shard.Position{})[0]
	reversed = true
	rest := collect(t, s, first.Next(shard.Position{}))
	if got := strings.Join(rowsOf(rest), " "); got != "c d" || rest[0].Changed != "" {
		t.Errorf("resumed with %q; change %q", got, rest[0].Changed)
	}
}

// TestResumeInChangedDirectory removes and adds files of a directory before, at and after the position.
func TestResumeInChangedDirectory(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 9) // and broken.png, which sorts first
	file := func(n int) string { return filepath.Join(dir, fmt.Sprintf("image%02d.png", n)) }
	first := collect(t, newSharder(t, dir, 8, nil), shard.Position{})[0] // broken, 0, 1, 2
	data, err := os.ReadFile(file(0))
	must(t, err)
	must(t, os.Remove(file(0)))
	must(t, os.Remove(file(2)))
	must(t, os.Remove(file(5)))
	must(t, os.WriteFile(filepath.Join(dir, "image03b.png"), data, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "aa.png"), data, 0o644))
	rest := collect(t, newSharder(t, dir, 8, nil), first.Next(shard.Position{}))
	want := "image03 image03b image04 image06 image07 image08"
	if got := strings.Join(rowsOf(rest), " "); got != want || rest[0].Changed == "" {
		t.Errorf("resumed with %q, want %q; change %q", got, want, rest[0].Changed)
	}
}

// TestAgainInMovedDataset reads a window again after the dataset has lost a row before it.
func TestAgainInMovedDataset(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 4)
	s := newSharder(t, dir, 4, nil)
	windows := collect(t, s, shard.Position{})
	must(t, os.Remove(filepath.Join(dir, "image00.png")))
	if _, err := s.Again(t.Context(), windows[1], shard.Position{}); !errors.Is(err, shard.ErrMoved) {
		t.Errorf("error %v, want ErrMoved", err)
	}
}

// TestAgainWithOtherItems reads a window again whose rows have another number of items, or whose items belong to other rows.
func TestAgainWithOtherItems(t *testing.T) {
	t.Parallel()
	row := func(name, task string) manifest.Row {
		return manifest.Row{
			Name: name, Image: "/data/" + name, ImageSHA256: fmt.Sprintf("%064x", []byte(name)), Width: 32, Height: 32,
			Overrides: manifest.Overrides{Task: task},
		}
	}
	rows := []manifest.Row{row("a", ""), row("b", ""), row("c", ""), row("d", "")}
	again := func(keep func(readAgain bool, it *item.Item) bool, changed ...manifest.Row) error {
		now, readAgain := rows, false
		s, err := shard.New(shard.Config{
			Spec: spec(t, t.TempDir()), Prior: bundled(t), Sources: manifest.Files{}, Items: 4,
			Keep: func(it *item.Item) bool { return keep == nil || keep(readAgain, it) },
			Rows: func(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
				return fixedRows(now...)(ctx, d, skipped)
			},
		})
		must(t, err)
		second := collect(t, s, shard.Position{})[1]
		now, readAgain = changed, true
		_, err = s.Again(t.Context(), second, shard.Position{})
		return err
	}
	if err := again(nil, rows...); err != nil {
		t.Errorf("the same rows: error %v", err)
	}
	err := again(nil, rows[0], rows[1], rows[2], row("d", "hdr"))
	if !errors.Is(err, shard.ErrMoved) || !strings.Contains(err.Error(), "rows 3 to 4 have 3 items, they had 4") {
		t.Errorf("a row with fewer items: error %v", err)
	}
	err = again(nil, rows[0], rows[1], rows[3], rows[2])
	if !errors.Is(err, shard.ErrMoved) || !strings.Contains(err.Error(), "row 3 has other files") {
		t.Errorf("rows that changed places: error %v", err)
	}
	// As many items as before, all of them of one row.
	err = again(func(readAgain bool, it *item.Item) bool {
		if readAgain {
			return it.Name == "c"
		}
		return it.Task == "hdr"
	}, rows...)
	if !errors.Is(err, shard.ErrMoved) || !strings.Contains(err.Error(), "row 4 has other files") {
		t.Errorf("items of another row: error %v", err)
	}
}

// TestAgainAfterAppend: each window of a dataset that has grown is made again, and the stored windows are read once for all of them.
func TestAgainAfterAppend(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 6)
	var windows []*shard.Window
	reads := 0
	s, err := shard.New(shard.Config{
		Spec: spec(t, dir), Prior: bundled(t), Sources: manifest.Files{}, Items: 4, Now: func() time.Time { return time.Unix(1e9, 0) },
		Stored: func(context.Context) iter.Seq2[*shard.Window, error] {
			return func(yield func(*shard.Window, error) bool) {
				reads++
				for _, w := range windows {
					if !yield(w, nil) {
						return
					}
				}
			}
		},
	})
	must(t, err)
	windows = collect(t, s, shard.Position{})
	base := len(windows)
	var next shard.Position
	for _, w := range windows {
		next = w.Next(next)
	}
	image, err := os.ReadFile(filepath.Join(dir, "image01.png"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "anew.png"), image, 0o644))
	w, err := s.Append(t.Context(), next, "", "command")
	must(t, err)
	windows, reads = append(windows, w), 0
	for _, old := range windows[:base] {
		if same, err := s.Again(t.Context(), old, w.Next(next)); err != nil || !reflect.DeepEqual(same, old) {
			t.Errorf("window %d made again: %+v, error %v", old.Number, same, err)
		}
	}
	if base < 3 || reads != 1 {
		t.Errorf("the stored windows were read %d times for %d windows, want once", reads, base)
	}
}
