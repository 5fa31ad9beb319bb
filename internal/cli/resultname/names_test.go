package resultname

import (
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
	"ddiff/internal/report/sweep"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// item is an item of one task and method.
func newItem(n int, name string, change ...func(*item.Item)) item.Item {
	it := item.Item{
		ID: id(n), Name: name, Task: "hdr", Params: map[string]float64{"scale": 2}, Sigma: 0.05, Width: 64, Height: 64, Fit: item.FitCenterCrop,
		Method: "ddiff", Prior: strings.Repeat("ab", 32), Solver: json.RawMessage(`{"steps":3,"gamma0":8}`),
	}
	for _, c := range change {
		c(&it)
	}
	return it
}

// rows are the rows of items.
func rows(items ...item.Item) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, it := range items {
			if !yield(Row{ID: it.ID}, nil) {
				return
			}
		}
	}
}

// linked restores items, writes their names, and returns name -> item.
func linked(t *testing.T, dir string, items ...item.Item) map[string]string {
	t.Helper()
	for _, it := range items {
		data, err := json.Marshal(item.Result{Item: it, Outcome: item.OutcomeDone})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{item.FileRestored: []byte(it.ID), item.FileResult: data} {
			path := filepath.Join(dir, filepath.FromSlash(item.Key(it.ID, name)))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantWritten(t, dir, rows(items...))
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

// wantWritten writes the names of rows without a warning.
func wantWritten(t *testing.T, dir string, rows iter.Seq2[Row, error]) {
	t.Helper()
	var warning strings.Builder
	if Write(t.Context(), dir, rows, &warning); warning.Len() > 0 {
		t.Error(warning.String())
	}
}

func id(n int) string { return regular.SHA256([]byte{byte(n)}) }

// Names of any row become files of the folder, each of its own.
func TestNamesAreSafeAndUnique(t *testing.T) {
	names := []string{
		"a/b", "a_b", "A_B", "../../etc/passwd", "..", ".hidden", "new\nline", `c:\d`, "ü ñ 漢字", "", "trailing. ",
		strings.Repeat("漢", 100), strings.Repeat("漢", 100) + "!", "bad\xffutf8", "a/b",
		"é", "e\u0301", "\u017f", "S", `a"b<c>d|e?f*g`,
	}
	var items []item.Item
	for i, name := range names {
		items = append(items, newItem(i, name))
	}
	dir := t.TempDir()
	found := linked(t, dir, items...)
	if len(found) != len(names) {
		t.Errorf("%d names for %d rows: %q", len(found), len(names), found)
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
		"a_b.hdr.png": id(0), "a_b.hdr." + id(1)[:12] + ".png": id(1), "ü ñ 漢字.hdr.png": id(8), "_.hdr.png": id(4), "_.hidden.hdr.png": id(5),
		"é.hdr.png": id(15), "é.hdr." + id(16)[:12] + ".png": id(16), "a_b_c_d_e_f_g.hdr.png": id(19),
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
	cat := newItem(1, "cat")
	linked(t, dir, cat)
	if err := os.RemoveAll(filepath.Join(dir, "items")); err != nil {
		t.Fatal(err)
	}
	wantWritten(t, dir, rows(cat))
	entries, err := os.ReadDir(filepath.Join(dir, namesFolder))
	if err != nil || len(entries) > 0 {
		t.Errorf("%v remain, %v", entries, err)
	}
}

// TestAttackNamesFolder: a link in the place of the folder of names leads nowhere, and is a warning.
func TestAttackNamesFolder(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	it := newItem(1, "a")
	linked(t, dir, it)
	folder := filepath.Join(dir, namesFolder)
	own := filepath.Join(elsewhere, "own.png")
	if err := errors.Join(os.RemoveAll(folder), os.Symlink(elsewhere, folder), os.Symlink("../items/mine/restored.png", own)); err != nil {
		t.Fatal(err)
	}
	var warning strings.Builder
	if Write(t.Context(), dir, rows(it), &warning); !strings.Contains(warning.String(), "remove it") {
		t.Errorf("warning %q, want the remedy", &warning)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 1 || entries[0].Name() != "own.png" {
		t.Errorf("the other folder has %v, %v", entries, err)
	}
}

// Rows of results.csv are read one by one, and a damaged file is an error.
func TestReportedItems(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) (all []Row, err error) {
		if err := os.WriteFile(filepath.Join(dir, "results.csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for r, err := range reported(dir) {
			if err != nil {
				return all, err
			}
			all = append(all, r)
		}
		return all, nil
	}
	const header = "item,image,run,outcome\n"
	got, err := read(header + "x,\"a,b\",1,done\nz,c,0,failed\ny,c,0,done\n")
	if want := []Row{{"x", "a,b"}, {"y", "c"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "item,image\nx,y\n", header + "x\n"} {
		if got, err := read(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestNamesOfSweep: names contain what varies and nothing else, in any order of the items.
func TestNamesOfSweep(t *testing.T) {
	var sweep []item.Item
	for _, sigma := range []float64{0.02, 0.05} {
		for _, steps := range []string{"3", "5"} {
			for run := range 2 {
				sweep = append(sweep, newItem(len(sweep), "coffee", func(it *item.Item) {
					it.Sigma, it.Solver, it.Run = sigma, json.RawMessage(`{"steps":`+steps+`,"gamma0":8}`), run
				}))
			}
		}
	}
	super := newItem(len(sweep), "coffee", func(it *item.Item) { it.Task, it.Params = "super_resolution", map[string]float64{"factor": 2} })
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
	if again := linked(t, t.TempDir(), append([]item.Item{super}, sweep...)...); !maps.Equal(again, found) {
		t.Errorf("in reverse order: %q, want %q", again, found)
	}

	// Every property that varies alone.
	for want, change := range map[string]func(*item.Item){
		"coffee.hdr.scale=4.png":        func(it *item.Item) { it.Params = map[string]float64{"scale": 4} },
		"coffee.hdr.32x32.resize.png":   func(it *item.Item) { it.Width, it.Height, it.Fit = 32, 32, item.FitResize },
		"coffee.hdr.prior=cdcdcdcd.png": func(it *item.Item) { it.Prior = strings.Repeat("cd", 32) },
		"coffee.hdr.diffpir.png":        func(it *item.Item) { it.Method, it.Solver = "diffpir", json.RawMessage(`{"steps":3,"rate":1}`) },
		"coffee.hdr.t0=1.png":           func(it *item.Item) { it.Solver = json.RawMessage(`{"steps":3,"gamma0":8,"t0":1}`) },
		"coffee.hdr.seed=9.png":         func(it *item.Item) { it.Seed = 9 },
		"coffee.inpaint_box.png":        func(it *item.Item) { it.Task, it.Params = "inpaint_box", nil },
	} {
		found := linked(t, t.TempDir(), newItem(0, "coffee"), newItem(1, "coffee", change))
		if found[want] != id(1) || len(found) != 2 {
			t.Errorf("%q, want %q", found, want)
		}
	}

	// Long lists are cut, and stay different.
	long := func(v float64) func(*item.Item) {
		return func(it *item.Item) {
			it.Params = map[string]float64{strings.Repeat("parameter", 30): 1, "second": v}
		}
	}
	found = linked(t, t.TempDir(), newItem(0, strings.Repeat("x", 300), long(1)), newItem(1, strings.Repeat("x", 300), long(2), func(it *item.Item) { it.Run = 1 }),
		newItem(2, strings.Repeat("x", 300), func(it *item.Item) { it.Params = map[string]float64{strings.Repeat("other", 40): 3} }))
	for name := range found {
		if len(name) > 255 {
			t.Errorf("%d bytes: %s", len(name), name)
		}
	}
	if len(found) != 3 {
		t.Errorf("%q", found)
	}
}

// A noise level of the solver that follows sigma does not vary beside it.
func TestTailsOfNoiseLevels(t *testing.T) {
	var cells []sweep.Cell
	for _, sigma := range []string{"0.02", "0.05", "0.05"} {
		s, err := manifest.ParseSigma(sigma)
		if err != nil {
			t.Fatal(err)
		}
		own := sigma
		if len(cells) == 2 {
			own = "0.1"
		}
		cells = append(cells, sweep.Cell{
			Problem:  sweep.Problem{Task: "hdr", Sigma: s, Size: "64x64"},
			Approach: sweep.Approach{Method: "ddiff", Settings: "steps=3;noise_std=" + own},
		})
	}
	if got, want := Tails(cells[:2]), []string{"hdr.sigma=0.02", "hdr.sigma=0.05"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Tails(cells)[2], "hdr.sigma=0.05.noise_std=0.1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Different cells have different tails, also if the tails are long or a file system ignores case, and in any order. Equal cells have equal ones.
func TestTailsAreDistinct(t *testing.T) {
	cell := func(task, settings string) sweep.Cell {
		return sweep.Cell{Problem: sweep.Problem{Task: task, Size: "64x64"}, Approach: sweep.Approach{Method: "ddiff", Settings: settings}}
	}
	long := "gamma0=8.123456789012345;a=0.1234567890123456;b=0.1234567890123456;lambda=0.123456789012345;"
	other := strings.ReplaceAll(long, "0.1", "0.2")
	cells := []sweep.Cell{
		cell("hdr", long+"t_gamma=300;zeta=1"), cell("hdr", long+"t_gamma=300;zeta=2"), cell("hdr", long+"t_gamma=310;zeta=1"),
		cell("hdr", other+"t_gamma=310;zeta=1"), cell("HDR", ""), cell("h/dr", ""), cell("h?dr", ""),
	}
	got := Tails(append(slices.Clone(cells), cells...))
	seen := map[string]bool{}
	for i, name := range got[:len(cells)] {
		if seen[cli.Fold(name)] || strings.ContainsAny(name, `/\:?*"<>|`) || len(name) > nameBytes {
			t.Errorf("name %q is unsafe, long or repeated: %q", name, got)
		}
		seen[cli.Fold(name)] = true
		if got[len(cells)+i] != name {
			t.Errorf("one cell has the names %q and %q", name, got[len(cells)+i])
		}
	}
	slices.Reverse(cells)
	again := Tails(cells)
	if slices.Reverse(again); !slices.Equal(again, got[:len(cells)]) {
		t.Errorf("in reverse order: %q, want %q", again, got[:len(cells)])
	}
}
