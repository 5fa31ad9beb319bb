package manifest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/regular"
)

func records(all ...Record) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
		yield(Record{}, errors.New("disk on fire"))
	}
}

func TestRecordRows(t *testing.T) {
	t.Parallel()
	root, _ := writeList(t, "l.parquet", "")
	c := ListConfig{File: "l.parquet", Locate: func(text string) (Place, error) { return LocateFile(root, text) }}
	seq := RecordRows(records(
		Record{Number: 1, Fields: []Field{{"image", "in/a.png"}, {"sigma", "0.5"}}},
		Record{Number: 2, Fields: []Field{{"image", "in/b.PNG"}}, Err: errors.New("sigma: want a number")},
		Record{Number: 3, Fields: []Field{{"task", "hdr"}}},
	), c)
	var got []string
	for row, err := range seq {
		if err != nil {
			got = append(got, "end "+err.Error())
			continue
		}
		got = append(got, fmt.Sprintf("%s %s %v", row.Name, strings.TrimPrefix(row.Image, root), row.Err))
	}
	want := []string{
		"in/a /in/a.png <nil>", "in/b /in/b.PNG l.parquet:2: sigma: want a number",
		"row-3  l.parquet:3: has neither image nor measurement; give one of them", "end disk on fire",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for row, err := range seq { // the sequence ends with its reader
		if err != nil || row.Name != "in/a" {
			t.Errorf("first row %+v, error %v", row, err)
		}
		break
	}
}

func TestListRows(t *testing.T) {
	t.Parallel()
	last := func(ctx context.Context, text string) (n int, last error) {
		for _, err := range ListRows(ctx, ListCSV, strings.NewReader(text), nowhere("l.csv")) {
			if last = err; err == nil {
				n++
			}
		}
		return n, last
	}
	if n, err := last(t.Context(), "image\na.png\nb.png\n"); n != 2 || err != nil {
		t.Errorf("%d rows, error %v", n, err)
	}
	if n, err := last(t.Context(), "image\n"); n != 0 || !errors.Is(err, ErrEmptyDataset) {
		t.Errorf("an empty list: %d rows, error %v", n, err)
	}
	if n, err := last(t.Context(), "imge\n"); n != 0 || !errors.Is(err, ErrBadList) {
		t.Errorf("a bad header: %d rows, error %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := last(ctx, "image\na.png\n"); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d rows, error %v", n, err)
	}
}

// A file below the list's directory keeps the directories in its name.
func TestLocateFile(t *testing.T) {
	t.Parallel()
	root, _ := writeList(t, "l.csv", "")
	for text, want := range map[string]string{"in/a.png": "in/a.png", "in/../outside.png": "outside.png", root + "/in/a.png": "in/a.png"} {
		p, err := LocateFile(root, text)
		if err != nil || p.Name != want || p.Address != filepath.Join(root, want) {
			t.Errorf("%s: %+v, error %v", text, p, err)
		}
	}
	if p, err := LocateFile(filepath.Join(root, "in"), "../outside.png"); err != nil || p.Name != "outside.png" {
		t.Errorf("above the directory: %+v, error %v", p, err)
	}
}

func TestCheckFile(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"a.png": "x", "empty.png": "", "dir/": ""})
	for name, want := range map[string]error{"a.png": nil, "empty.png": ErrEmptyFile, "dir": regular.ErrKind} {
		if err := CheckFile(filepath.Join(root, name)); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	if err := CheckFile(filepath.Join(root, "dir")); errors.Is(err, ErrEmptyFile) {
		t.Errorf("a directory is an empty file: %v", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(plant(t, map[string]string{"a.png": "content"}), "a.png")
	if data, err := (Files{}).Get(t.Context(), path); err != nil || string(data) != "content" {
		t.Errorf("%q, error %v", data, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if data, err := (Files{}).Get(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %q, error %v", data, err)
	}
}
