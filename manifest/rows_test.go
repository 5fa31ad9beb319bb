package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plant makes a folder of files. A name that ends in "/" is a directory, a value "-> x" a
// symbolic link to x.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, path)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		must(t, err)
	}
	return root
}

// collect reads a dataset to its end.
func collect(t *testing.T, d Dataset) (rows []Row, skipped []string, err error) {
	t.Helper()
	for row, rowsErr := range Rows(t.Context(), d, func(e Skip) { skipped = append(skipped, e.Path) }) {
		if err != nil {
			t.Fatalf("a row after the error %v", err)
		}
		if rowsErr != nil {
			err = rowsErr
			continue
		}
		if row.Index != len(rows) {
			t.Errorf("row %q has index %d, want %d", row.Name, row.Index, len(rows))
		}
		rows = append(rows, row)
	}
	return rows, skipped, err
}

// describe prints rows with paths relative to root, one per line.
func describe(root string, rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s = %s", r.Name, strings.TrimPrefix(r.Image, root+"/"))
		if r.Err != nil {
			fmt.Fprintf(&b, " ! %s", strings.ReplaceAll(r.Err.Error(), root+"/", ""))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDirectories(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"b.png":           "x",
		"a.JPG":           "x",
		"a.png":           "x",
		"a.png.webp":      "x",
		"c.tiff":          "",
		"d.tif":           "-> b.png",
		"e.jpeg":          "-> nowhere",
		"f.png/inner.png": "x",
		".hidden.png":     "x",
		".git/x.png":      "x",
		"notes.txt":       "x",
		"sub/b.png":       "x",
		"sub/deep/z.webp": "x",
		"zero/":           "",
		"loop":            "-> .",
		"w\nx.png":        "x",
		"v\nw.png/":       "",
		"bad\xff.png":     "x",
	}
	root := plant(t, files)
	flat := "a.JPG = a.JPG\n" +
		"a.png = a.png\n" +
		"a.png.webp = a.png.webp\n" +
		"b = b.png\n" +
		"bad\uFFFD = bad\xff.png ! bad\uFFFD.png: the file name is not valid UTF-8; rename the file\n" +
		"c = c.tiff ! c.tiff: is an empty file\n" +
		"d = d.tif\n" +
		"e = e.jpeg ! e.jpeg: no such file or directory\n" +
		"f = f.png ! f.png: not a regular file but a directory\n"
	strange := "v\uFFFDw = v\nw.png ! v\uFFFDw.png: not a regular file but a directory\nw\uFFFDx = w\nx.png\n"
	for _, tc := range []struct {
		name        string
		dataset     Dataset
		want, skips string
	}{
		{"flat", Dataset{Path: root}, flat + strange, ".git .hidden.png loop notes.txt sub zero"},
		{"recursive", Dataset{Path: root, Recursive: true}, flat + "sub/b = sub/b.png\nsub/deep/z = sub/deep/z.webp\n" + strange, ".git .hidden.png loop notes.txt"},
		{"limited", Dataset{Path: root, Limit: 2}, "a.JPG = a.JPG\na.png = a.png\n", ".git .hidden.png"},
		{"glob", Dataset{Path: root + "/[ab]*.png"}, "a = a.png\nb = b.png\nbad\uFFFD = bad\xff.png ! bad\uFFFD.png: the file name is not valid UTF-8; rename the file\n", ""},
		{"glob over directories", Dataset{Path: root + "/[sf.]*/*"}, "f.png/inner = f.png/inner.png\nsub/b = sub/b.png\n", ".git/x.png sub/deep"},
		{"glob over directories that lack the file", Dataset{Path: root + "/*/b.png"}, "loop/b = loop/b.png\nsub/b = sub/b.png\n", ""},
		{"glob that spells a hidden name", Dataset{Path: root + "/.g*/*"}, ".git/x = .git/x.png\n", ""},
		{"glob through a link", Dataset{Path: root + "/loop/b.*"}, "b = loop/b.png\n", ""},
		{"one image", Dataset{Path: root + "/b.png"}, "b = b.png\n", ""},
		{"one image that is empty", Dataset{Path: root + "/c.tiff"}, "c = c.tiff ! c.tiff: is an empty file\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rows, skipped, err := collect(t, tc.dataset)
			must(t, err)
			if got := describe(root, rows); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
			for i, p := range skipped {
				skipped[i] = strings.TrimPrefix(p, root+"/")
			}
			if got := strings.Join(skipped, " "); got != tc.skips {
				t.Errorf("skipped %q, want %q", got, tc.skips)
			}
		})
	}
}

// TestOutputInDirectory: what ddiff has written among the images are no images; photographs beside it are.
func TestOutputInDirectory(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"items/a.png": "x", "out/.ddiff/lock": "", "out/b.png": "x", "out/mosaic.png": "x", "out/items/b/truth.png": "x"})
	for _, tc := range []struct {
		dataset       Dataset
		want, skipped string
	}{
		{Dataset{Path: root, Recursive: true}, "items/a = items/a.png\nout/b = out/b.png\n", "out/items out/mosaic.png"},
		{Dataset{Path: root + "/out"}, "b = out/b.png\n", "out/items out/mosaic.png"},
		{Dataset{Path: root + "/*/*.png"}, "items/a = items/a.png\nout/b = out/b.png\n", "out/mosaic.png"},
		{Dataset{Path: root + "/[ao]*/*/*/*.png"}, "", "out/items/b/truth.png"},
		{Dataset{Path: root + "/out/items/*/truth.png"}, "b/truth = out/items/b/truth.png\n", ""}, // the output is meant
	} {
		rows, skipped, err := collect(t, tc.dataset)
		if tc.want != "" {
			must(t, err)
		}
		got, gotSkipped := describe(root, rows), strings.ReplaceAll(strings.Join(skipped, " "), root+"/", "")
		if got != tc.want || gotSkipped != tc.skipped {
			t.Errorf("%s: %s, skipped %q", tc.dataset.Path, got, gotSkipped)
		}
	}
}

func TestDatasetErrors(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{
		"empty/":        "",
		"texts/a.txt":   "x",
		"texts/b.txt":   "x",
		"texts/in/":     "",
		"notes.md":      "x",
		"header.csv":    "image\n",
		"nothing.csv":   "\n\n",
		"column.csv":    "imge,task\n",
		"needs.csv":     "name,task\na,b\n",
		"twice.csv":     "image,task,image\n",
		"param.csv":     "image,param.\n",
		"quote.csv":     "image,\"ta\"sk\n",
		"far.csv":       "image,colour\n",
		"utf16.csv":     "\xff\xfei\x00m\x00a\x00g\x00e\x00\n\x00",
		"utf16.jsonl":   "\xfe\xff\x00{\x00}\x00\n",
		"utf16.txt":     "\xff\xfea\x00\n\x00",
		"long.csv":      "image\n" + strings.Repeat("x", maxListLine+1) + "\n",
		"nothing.jsonl": "\n",
	})
	kinds := "png, jpg, jpeg, jpe, jfif, tif, tiff, webp, bmp, gif"
	for _, tc := range []struct {
		path, want string
		recursive  bool
		sentinel   error
	}{
		{"missing", "no dataset there: no such file or directory; check dataset.path", false, ErrNoDataset},
		{"notes.md", "no dataset there: want a directory, a glob, a .csv, .jsonl, .txt or .parquet list with its cells separated by commas, a .tar archive, or an image (" + kinds + ")", false, ErrNoDataset},
		{"**/*.png", "no dataset there: ** is not supported; give the directory and dataset.recursive: true", false, ErrNoDataset},
		{"[a", "no dataset there: syntax error in pattern; check the brackets of dataset.path", false, ErrNoDataset},
		{"empty", "dataset has no rows: no image in the directory, 0 other entries skipped; want files that end in " + kinds + "; set dataset.recursive: true to read the directories below", false, ErrEmptyDataset},
		{"texts", "dataset has no rows: no image in the directory, 2 other entries skipped; want files that end in " + kinds, true, ErrEmptyDataset},
		{"texts/*", "dataset has no rows: the glob matches no image, 3 other entries; want files that end in " + kinds, false, ErrEmptyDataset},
		{"texts/*.csv", "dataset has no rows: the glob matches no file; check dataset.path", false, ErrEmptyDataset},
		{"header.csv", "dataset has no rows: the list has no line with an image or a measurement; add one per row", false, ErrEmptyDataset},
		{"nothing.jsonl", "dataset has no rows: the list has no line with an image or a measurement; add one per row", false, ErrEmptyDataset},
		{"nothing.csv", "not a usable list: nothing.csv: has no header; the first line names the columns, such as image,task", false, ErrBadList},
		{"column.csv", `not a usable list: column.csv:1: unknown column "imge" (did you mean "image"?)`, false, ErrBadList},
		{"utf16.csv", "not a usable list: utf16.csv:1: is in UTF-16; save it as UTF-8", false, ErrBadList},
		{"utf16.jsonl", "not a usable list: utf16.jsonl:1: is in UTF-16; save it as UTF-8", false, ErrBadList},
		{"utf16.txt", "not a usable list: utf16.txt:1: is in UTF-16; save it as UTF-8", false, ErrBadList},
		{"far.csv", `not a usable list: far.csv:1: unknown column "colour" (valid: image, measurement, name, task, sigma, photons, seed, mask, kernel, sha256, width, height, param.NAME); with dataset.columns, as in {image: file_name}, other columns are ignored`, false, ErrBadList},
		{"needs.csv", `not a usable list: needs.csv:1: the header has neither column "image" nor "measurement"; add one of them, or map it to one of name, task in dataset.columns`, false, ErrBadList},
		{"twice.csv", `not a usable list: twice.csv:1: column "image" is repeated; remove one`, false, ErrBadList},
		{"param.csv", `not a usable list: param.csv:1: column "param." names no parameter, want param.NAME`, false, ErrBadList},
		{"quote.csv", `not a usable list: quote.csv:1: not valid CSV: extraneous or missing " in quoted-field`, false, ErrBadList},
		{"long.csv", "not a usable list: long.csv:2: the line is longer than 1 MiB; write one row per line", false, ErrBadList},
	} {
		t.Run(tc.path, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(root, tc.path)
			rows, _, err := collect(t, Dataset{Path: path, Recursive: tc.recursive})
			if len(rows) > 0 || !errors.Is(err, tc.sentinel) {
				t.Fatalf("%d rows, error %v", len(rows), err)
			}
			if want := fmt.Sprintf("read dataset %q: %s", path, tc.want); err.Error() != want {
				t.Errorf("got:\n%v\nwant:\n%s", err, want)
			}
		})
	}
	if _, _, err := collect(t, Dataset{}); !errors.Is(err, ErrNoDataset) {
		t.Errorf("no path: %v", err)
	}
	if _, _, err := collect(t, Dataset{Path: filepath.Join(root, "missing")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; run the tests as another user")
	}
	root := plant(t, map[string]string{"a.png": "x", "sub/b.png": "x", "list.csv": "image\na.png\n"})
	for _, name := range []string{"a.png", "sub", "list.csv"} {
		path := filepath.Join(root, name)
		must(t, os.Chmod(path, 0))
		t.Cleanup(func() { os.Chmod(path, 0o700) }) //nolint:errcheck // TempDir reports what it cannot remove
	}
	rows, _, err := collect(t, Dataset{Path: root, Recursive: true})
	want := "a = a.png ! a.png: permission denied\nsub = sub ! sub: list the directory: permission denied\n"
	if got := describe(root, rows); err != nil || got != want {
		t.Errorf("error %v, rows:\n%s", err, got)
	}
	for _, name := range []string{"sub", "list.csv"} {
		if _, _, err := collect(t, Dataset{Path: filepath.Join(root, name)}); !errors.Is(err, ErrNoDataset) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRowsCanStop(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"a.png": "x", "b.png": "x", "c.png": "x"})
	n := 0
	for _, err := range Rows(t.Context(), Dataset{Path: root}, nil) {
		must(t, err)
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d rows after a break at 2", n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var names []string
	var last error
	for row, err := range Rows(ctx, Dataset{Path: root}, nil) {
		names, last = append(names, row.Name), err
		cancel()
	}
	if !slices.Equal(names, []string{"a", ""}) || !errors.Is(last, context.Canceled) {
		t.Errorf("after cancel: %q, %v", names, last)
	}
}

func TestRowsRepeat(t *testing.T) {
	t.Parallel()
	root := plant(t, map[string]string{"a.png": "x", "list.csv": "image\na.png\na.png\na.png\n"})
	seq := Rows(t.Context(), Dataset{Path: filepath.Join(root, "list.csv")}, nil)
	for range 2 {
		var names []string
		for row, err := range seq {
			must(t, err)
			names = append(names, row.Name)
		}
		if want := []string{"a", "a-2", "a-3"}; !slices.Equal(names, want) {
			t.Errorf("names %q, want %q", names, want)
		}
	}
}

// Files keep their extensions if their names would be equal without them, or equal to the name of another file.
func TestStems(t *testing.T) {
	t.Parallel()
	for files, want := range map[string]string{
		"a.png b.jpg":                  "a b",
		"a.png a.jpg b.png":            "a.png a.jpg b",
		"a.png a.png.webp":             "a a.png.webp",
		"a.png a.png.webp a.png.tif c": "a a.png.webp a.png.tif c",
	} {
		if got := strings.Join(stems(strings.Fields(files)), " "); got != want {
			t.Errorf("%s: names %s, want %s", files, got, want)
		}
	}
}

func TestNamerIsUnique(t *testing.T) {
	t.Parallel()
	n := namer{}
	var got []string
	for _, name := range []string{"a", "a", "a-2", "a", "a-3", "", ""} {
		got = append(got, n.unique(name))
	}
	if want := []string{"a", "a-2", "a-2-2", "a-3", "a-3-2", "", "-2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
