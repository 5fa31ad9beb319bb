package sweep

import (
	"slices"
	"testing"
)

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
