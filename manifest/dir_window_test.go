package manifest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// However many entries are held at once, each comes once and in order.
func TestWindows(t *testing.T) {
	t.Parallel()
	files := map[string]string{"sub/x.png": "x", "sub/y.png": "x"}
	for i := range 40 {
		files[fmt.Sprintf("%02d.png", i*7%40)] = "x"
	}
	root := plant(t, files)
	for _, most := range []int{1, 2, 3, 7, 20, 40, 41, 1000} {
		var names []string
		after, windows := "", 0
		for {
			w, err := readWindow(root, after, most)
			must(t, err)
			windows++
			for _, e := range w.entries {
				names = append(names, e.Name())
			}
			if !w.more {
				break
			}
			if len(w.entries) != most {
				t.Errorf("%d at once: a window of %d", most, len(w.entries))
			}
			after = w.last()
		}
		var want []string
		entries, err := os.ReadDir(root)
		must(t, err)
		for _, e := range entries {
			want = append(want, e.Name())
		}
		if got := strings.Join(names, " "); got != strings.Join(want, " ") {
			t.Errorf("%d at once: %s", most, got)
		}
		if n := (len(want) + most - 1) / most; windows != n {
			t.Errorf("%d at once: %d windows, want %d", most, windows, n)
		}
	}
}

// A directory of several windows gives the rows of one, but for the extensions in the names.
func TestDirectoriesOfSeveralWindows(t *testing.T) {
	t.Parallel()
	files := map[string]string{"big/x.txt": "x", "big/a/deep.png": "x", "z.png": "x"}
	for i := range 20 {
		files[fmt.Sprintf("big/%02d.png", i)] = "x"
	}
	root := plant(t, files)
	read := func(d Dataset, window int) (out []Row, skipped int) {
		s := &stream{ctx: t.Context(), names: namer{}, window: window, onSkip: func(string) { skipped++ }}
		s.yield = func(r Row, err error) bool {
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			out = append(out, r)
			return true
		}
		must(t, s.dataset(d))
		return out, skipped
	}
	for _, d := range []Dataset{{Path: root, Recursive: true}, {Path: root + "/big/*"}, {Path: root + "/*/*.png"}} {
		whole, wholeSkipped := read(d, dirWindow)
		parts, partsSkipped := read(d, 6)
		if len(parts) != len(whole) || len(whole) < 20 || partsSkipped != wholeSkipped {
			t.Fatalf("%s: %d rows in windows, %d in one; %d and %d skipped", d.Path, len(parts), len(whole), partsSkipped, wholeSkipped)
		}
		for i := range whole {
			if parts[i].Image != whole[i].Image || parts[i].Name != whole[i].Name && parts[i].Name != whole[i].Name+".png" {
				t.Errorf("%s: row %d is %+v, want %+v", d.Path, i, parts[i], whole[i])
			}
		}
	}
}

// Names are unique beyond the number of names in memory.
func TestNamesBeyondMemoryLimitAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	n := 0
	rows := func(yield func(Row, error) bool) {
		for i := range namesKept + 3000 {
			if !yield(Row{Name: []string{"cat", "cat-65600", "dog-65601-65601", "\x00"}[i%4]}, nil) {
				return
			}
		}
	}
	for row, err := range Number(t.Context(), rows, 0, false) {
		if err != nil || seen[row.Name] || row.Index != n {
			t.Fatalf("row %d is %+v, error %v", n, row, err)
		}
		if n == namesKept && row.Name != "cat-65536" {
			t.Errorf("the first row beyond the names in memory is %q", row.Name)
		}
		seen[row.Name] = true
		n++
	}
	if n != namesKept+3000 {
		t.Errorf("%d rows", n)
	}
	// Names that are asserted to be unique stay unchanged, except for unprintable characters.
	s := &stream{ctx: t.Context(), rows: namesKept, names: namer{}}
	for given, want := range map[string]string{"cat": "cat", "c\x00t": "c\uFFFDt-"} {
		s.yield = func(r Row, _ error) bool {
			if strings.TrimSuffix(r.Name, fmt.Sprint(r.Index)) != want {
				t.Errorf("%q became %q", given, r.Name)
			}
			return true
		}
		must(t, s.add(Row{Name: given}, true))
	}
}
