package resultname

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
)

// linked writes the names of items, all of which are restored, and returns name -> item.
func linked(t *testing.T, dir string, items ...Item) map[string]string {
	t.Helper()
	for _, it := range items {
		path := filepath.Join(dir, filepath.FromSlash(manifest.ItemKey(it.ID, manifest.FileRestored)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(it.ID), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := Write(t.Context(), dir, func() iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) {
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

// restoredItem is an item of one task and method, with changes.
func restoredItem(n int, name string, change ...func(*Item)) Item {
	it := Item{ID: id(n), Name: name, Seed: "0"}
	it.Cell.Problem = sweep.Problem{Task: "hdr", Params: "scale=2", Sigma: 0.05, Size: "64x64 center_crop"}
	it.Cell.Approach = sweep.Approach{Method: "ddiff", Prior: strings.Repeat("ab", 32), Settings: "steps=3;gamma0=8"}
	for _, c := range change {
		c(&it)
	}
	return it
}

func id(n int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n)})) }

// Names of any row become files of the folder, each of its own.
func TestNamesAreSafeAndUnique(t *testing.T) {
	rows := []string{
		"a/b", "a_b", "A_B", "../../etc/passwd", "..", ".hidden", "new\nline", `c:\d`, "ü ñ 漢字", "", "trailing. ",
		strings.Repeat("漢", 100), strings.Repeat("漢", 100) + "!", "bad\xffutf8", "a/b",
		"con", "Nul.tar", "COM1", "lpt9 ", "conto", "com10", "é", "e\u0301", "\u017f", "S", `a"b<c>d|e?f*g`,
	}
	var items []Item
	for i, name := range rows {
		items = append(items, restoredItem(i, name))
	}
	dir := t.TempDir()
	found := linked(t, dir, items...)
	if len(found) != len(rows) {
		t.Errorf("%d names for %d rows: %q", len(found), len(rows), found)
	}
	folded := map[string]bool{}
	for name := range found {
		if folded[strings.ToLower(strings.ToUpper(name))] {
			t.Errorf("%q is the name of another file on a file system without upper case", name)
		}
		folded[strings.ToLower(strings.ToUpper(name))] = true
		if len(name) > 255 || !utf8.ValidString(name) || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".png") {
			t.Errorf("unsafe name %q", name)
		}
	}
	for name, want := range map[string]string{
		"a_b.hdr.png": id(0), "a_b.hdr." + id(1)[:8] + ".png": id(1), "ü ñ 漢字.hdr.png": id(8), "_.hdr.png": id(4), "_.hidden.hdr.png": id(5),
		"_con.hdr.png": id(15), "_Nul.tar.hdr.png": id(16), "_COM1.hdr.png": id(17), "_lpt9.hdr.png": id(18), "conto.hdr.png": id(19), "com10.hdr.png": id(20),
		"é.hdr.png": id(21), "é.hdr." + id(22)[:8] + ".png": id(22), "a_b_c_d_e_f_g.hdr.png": id(25),
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
	cat := restoredItem(1, "cat")
	linked(t, dir, cat)
	if err := os.RemoveAll(filepath.Join(dir, "items")); err != nil {
		t.Fatal(err)
	}
	err := Write(t.Context(), dir, func() iter.Seq2[Item, error] {
		return func(yield func(Item, error) bool) { yield(cat, nil) }
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
	read := func(text string) ([]Item, error) {
		if err := os.WriteFile(filepath.Join(dir, "results.csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var all []Item
		for it, err := range reportedItems(dir) {
			if err != nil {
				return all, err
			}
			all = append(all, it)
		}
		return all, nil
	}
	const header = "item,image,task,params,sigma,size,prior,method,settings,run,seed,outcome,fit\n"
	got, err := read(header + "x,\"a,b\",hdr,scale=2,0.05,64x48,abab,ddiff,steps=3,1,7,done,center_crop\n" +
		"z,c,hdr,,0.05,,,ddiff,,0,0,failed,pad\ny,c,hdr,scale=2,0.05,64x48,abab,ddiff,steps=3,0,0,done,pad\n")
	first := Item{ID: "x", Name: "a,b", Seed: "7", Run: 1}
	first.Cell.Problem = sweep.Problem{Task: "hdr", Params: "scale=2", Sigma: 0.05, Size: "64x48 center_crop"}
	first.Cell.Approach = sweep.Approach{Method: "ddiff", Prior: "abab", Settings: "steps=3"}
	second := first
	second.ID, second.Name, second.Seed, second.Run, second.Cell.Size = "y", "c", "0", 0, "pad"
	if want := []Item{first, second}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{
		"", "item,image\nx,y\n", header + "x,a,hdr,,0.05,8x8,,ddiff,,one,0,done,pad\n", header + "x,a,hdr,,much,8x8,,ddiff,,0,0,done,pad\n",
		header + "x\n",
	} {
		if got, err := read(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestNamesOfSweep: names contain what varies and nothing else, in any order of the items.
func TestNamesOfSweep(t *testing.T) {
	var sweep []Item
	for _, sigma := range []float64{0.02, 0.05} {
		for _, steps := range []string{"3", "5"} {
			for run := range 2 {
				sweep = append(sweep, restoredItem(len(sweep), "coffee", func(it *Item) {
					it.Cell.Sigma, it.Cell.Settings, it.Run = manifest.Sigma(sigma), "steps="+steps+";gamma0=8", run
				}))
			}
		}
	}
	super := restoredItem(len(sweep), "coffee", func(it *Item) { it.Cell.Task, it.Cell.Params = "super_resolution", "factor=2" })
	found := linked(t, t.TempDir(), append(sweep, super)...)
	for name, want := range map[string]string{
		"coffee.hdr.sigma=0.02.steps=3.run0.png":      id(0),
		"coffee.hdr.sigma=0.02.steps=3.run1.png":      id(1),
		"coffee.hdr.sigma=0.05.steps=5.run1.png":      id(7),
		"coffee.super_resolution.sigma=0.05.run0.png": id(8),
	} {
		if found[name] != want {
			t.Errorf("%q leads to %q, want %q; all: %q", name, found[name], want, found)
		}
	}
	if len(found) != 9 {
		t.Errorf("%d names for 9 items: %q", len(found), found)
	}
	slices.Reverse(sweep)
	if again := linked(t, t.TempDir(), append([]Item{super}, sweep...)...); !maps.Equal(again, found) {
		t.Errorf("in reverse order: %q, want %q", again, found)
	}

	// Every property that varies alone.
	for want, change := range map[string]func(*Item){
		"coffee.hdr.scale=4.png":        func(it *Item) { it.Cell.Params = "scale=4" },
		"coffee.hdr.32x32.resize.png":   func(it *Item) { it.Cell.Size = "32x32 resize" },
		"coffee.hdr.prior=cdcdcdcd.png": func(it *Item) { it.Cell.Prior = strings.Repeat("cd", 32) },
		"coffee.hdr.diffpir.png":        func(it *Item) { it.Cell.Method, it.Cell.Settings = "diffpir", "steps=3;rate=1" },
		"coffee.hdr.t0=1.png":           func(it *Item) { it.Cell.Settings = "steps=3;gamma0=8;t0=1" },
		"coffee.hdr.seed=9.png":         func(it *Item) { it.Seed = "9" },
		"coffee.inpaint_box.png":        func(it *Item) { it.Cell.Task, it.Cell.Params = "inpaint_box", "" },
	} {
		found := linked(t, t.TempDir(), restoredItem(0, "coffee"), restoredItem(1, "coffee", change))
		if found[want] != id(1) || len(found) != 2 {
			t.Errorf("%q, want %q", found, want)
		}
	}

	// Long lists are cut, and stay different.
	long := func(v string) func(*Item) {
		return func(it *Item) { it.Cell.Params = strings.Repeat("parameter=1;", 30) + "last=" + v }
	}
	found = linked(t, t.TempDir(), restoredItem(0, strings.Repeat("x", 300), long("1")), restoredItem(1, strings.Repeat("x", 300), long("2"), func(it *Item) { it.Run = 1 }),
		restoredItem(2, strings.Repeat("x", 300), func(it *Item) { it.Cell.Params = strings.Repeat("other=3;", 40) }))
	for name := range found {
		if len(name) > 255 {
			t.Errorf("%d bytes: %s", len(name), name)
		}
	}
	if len(found) != 3 {
		t.Errorf("%q", found)
	}
}

func TestNameCells(t *testing.T) {
	cell := func(change func(*sweep.Cell)) sweep.Cell {
		c := restoredItem(0, "").Cell
		change(&c)
		return c
	}
	cells := []sweep.Cell{
		cell(func(*sweep.Cell) {}), cell(func(c *sweep.Cell) { c.Sigma = 0.1 }), cell(func(c *sweep.Cell) { c.Task = "HDR" }),
		cell(func(c *sweep.Cell) { c.Task = "h/dr" }), cell(func(c *sweep.Cell) { c.Task = "h?dr" }), cell(func(c *sweep.Cell) { c.Task = "nul" }),
	}
	got := Cells(cells)
	if got[1] != "hdr.sigma=0.1.ddiff" || got[5] != "_nul.sigma=0.05.ddiff" {
		t.Errorf("%q", got)
	}
	seen := map[string]bool{}
	for _, name := range got {
		if seen[strings.ToLower(name)] || strings.ContainsAny(name, `/\:?*"<>|`) {
			t.Errorf("name %q is unsafe or repeated: %q", name, got)
		}
		seen[strings.ToLower(name)] = true
	}
	slices.Reverse(cells)
	again := Cells(cells)
	if slices.Reverse(again); !slices.Equal(again, got) {
		t.Errorf("in reverse order: %q, want %q", again, got)
	}
}
