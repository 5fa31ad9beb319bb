package main

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/manifest"
)

// linked writes the names of items, all of which are restored, and returns name -> item.
func linked(t *testing.T, dir string, items ...namedItem) map[string]string {
	t.Helper()
	for _, it := range items {
		path := filepath.Join(dir, filepath.FromSlash(manifest.ItemKey(it.id, manifest.FileRestored)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(it.id), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := writeNames(t.Context(), dir, func() iter.Seq2[namedItem, error] {
		return func(yield func(namedItem, error) bool) {
			for _, it := range items {
				if !yield(it, nil) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, namesFolder))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, namesFolder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(data)
	}
	return found
}

func id(n int) string { return fmt.Sprintf("%064x", n+0xabc0000000) }

// Names of any row become files of the folder, each of its own.
func TestNamesAreSafeAndUnique(t *testing.T) {
	rows := []string{
		"a/b", "a_b", "A_B", "../../etc/passwd", "..", ".hidden", "new\nline", `c:\d`, "ü ñ 漢字", "", "trailing. ",
		strings.Repeat("漢", 100), strings.Repeat("漢", 100) + "!", "bad\xffutf8", "a/b",
	}
	var items []namedItem
	for i, name := range rows {
		items = append(items, namedItem{id: id(i), name: name, task: "hdr", method: "ddiff"})
	}
	dir := t.TempDir()
	found := linked(t, dir, items...)
	if len(found) != len(rows) {
		t.Errorf("%d names for %d rows: %q", len(found), len(rows), found)
	}
	for name := range found {
		if len(name) > 255 || !utf8.ValidString(name) || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".png") {
			t.Errorf("unsafe name %q", name)
		}
	}
	for name, want := range map[string]string{
		"a_b.hdr.png": id(0), "a_b.hdr." + id(1)[:8] + ".png": id(1), "ü ñ 漢字.hdr.png": id(8), "_.hdr.png": id(4), "_.hidden.hdr.png": id(5),
	} {
		if found[name] != want {
			t.Errorf("%q leads to %q, want %q", name, found[name], want)
		}
	}
	// Fewer items: the other names go.
	if found := linked(t, dir, items[8]); len(found) != 1 {
		t.Errorf("names %q remain", found)
	}
}

// An item without a restored image gets no name, and a link to a removed item goes.
func TestNamesOfMissingItems(t *testing.T) {
	dir := t.TempDir()
	cat := namedItem{id: id(1), name: "cat", task: "hdr", method: "ddiff"}
	linked(t, dir, cat)
	if err := os.RemoveAll(filepath.Join(dir, "items")); err != nil {
		t.Fatal(err)
	}
	err := writeNames(t.Context(), dir, func() iter.Seq2[namedItem, error] {
		return func(yield func(namedItem, error) bool) { yield(cat, nil) }
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, namesFolder))
	if err != nil || len(entries) > 0 {
		t.Errorf("%v remain, %v", entries, err)
	}
}

// Rows of results.csv are read one by one, and a damaged file is an error.
func TestReportedItems(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) ([]namedItem, error) {
		if err := os.WriteFile(filepath.Join(dir, "results.csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var all []namedItem
		for it, err := range reportedItems(dir) {
			if err != nil {
				return all, err
			}
			all = append(all, it)
		}
		return all, nil
	}
	got, err := read("item,image,task,method,run,seed\nx,\"a,b\",hdr,ddiff,1,0\ny,c,hdr,ddiff,0,0\n")
	want := []namedItem{{"x", "a,b", "hdr", "ddiff", 1}, {"y", "c", "hdr", "ddiff", 0}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "item,image\nx,y\n", "item,image,task,method,run\nx,a,hdr,ddiff,one\n", "item,image,task,method,run\nx\n"} {
		if got, err := read(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
