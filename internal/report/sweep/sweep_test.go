package sweep

import (
	"slices"
	"strings"
	"testing"
)

// TestUnresolvedCellMayBe: the items of a row that cannot be read may belong to any cell with equal known properties.
func TestUnresolvedCellMayBe(t *testing.T) {
	t.Parallel()
	full := Cell{Problem{Task: "hdr", Params: "a=1;b=2", Sigma: 0.05, Size: "64x64"}, Approach{Method: "ddiff"}}
	for name, change := range map[string]func(*Cell){
		"task": func(c *Cell) { c.Task = "inpainting" }, "method": func(c *Cell) { c.Method = "dps" },
		"sigma": func(c *Cell) { c.Sigma = 0.1 }, "params": func(c *Cell) { c.Params = "a=2" },
	} {
		unread := full
		unread.Size, unread.Params = "", "a=1"
		if !unread.MayBe(full) {
			t.Fatalf("%+v may not be %+v", unread, full)
		}
		if change(&unread); unread.MayBe(full) {
			t.Errorf("another %s: %+v may be %+v", name, unread, full)
		}
	}
	if full.MayBe(Cell{Problem{Task: "hdr"}, Approach{Method: "ddiff"}}) {
		t.Error("an unresolved cell has items")
	}
}

func TestFileNamesAreSafeAndDistinct(t *testing.T) {
	t.Parallel()
	names := FileNames{}
	if got := names.Unique("azAZ09-_.", "-_."); got != "azAZ09-_." {
		t.Errorf("name %q of a safe one", got)
	}
	for _, name := range []string{"hdr", "../../etc", "a b", "a_b", "a/b", "", "\x00", "ü", strings.Repeat("x", 300), strings.Repeat("x", 301)} {
		before := len(names)
		got := names.Unique(name, "-_")
		if len(names) != before+1 {
			t.Errorf("%q is given twice", got)
		}
		if got == "" || strings.ContainsAny(got, "/\\. \x00") || len(got) > maxNameLength+4 {
			t.Errorf("name %q of %q", got, name)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	t.Parallel()
	// Of equal numbers the number with more zeros is first, as in byte order.
	want := []string{"", "01", "1", "2", "10", "a", "a1b2", "a1b10", "a02", "a2", "a10", "ab", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNatural)
	if !slices.Equal(got, want) {
		t.Errorf("sorted = %q, want %q", got, want)
	}
}

func FuzzCompareNatural(f *testing.F) {
	f.Add("img2", "img10", "img02")
	f.Add("7", "", "007x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba := CompareNatural(a, b), CompareNatural(b, a)
		if ab != -ba {
			t.Errorf("compare(%q, %q) = %d, reversed %d", a, b, ab, ba)
		}
		if (ab == 0) != (a == b) {
			t.Errorf("compare(%q, %q) = %d", a, b, ab)
		}
		if bc := CompareNatural(b, c); ab < 0 && bc < 0 && CompareNatural(a, c) >= 0 {
			t.Errorf("%q < %q < %q, but not the first < the last", a, b, c)
		}
	})
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	if got, want := Printable("a\x1b[31m\tü\n\u202e"), "a?[31m?ü??"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
}
