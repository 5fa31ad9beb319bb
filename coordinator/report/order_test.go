package report

import (
	"slices"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

func TestCompareNatural(t *testing.T) {
	t.Parallel()
	// Of equal numbers the number with more zeros is first, as in byte order.
	want := []string{"", "01", "1", "2", "10", "a", "a1b2", "a1b10", "a02", "a2", "a10", "ab", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNatural)
	if !slices.Equal(got, want) {
		t.Errorf("sorted = %q, want %q", got, want)
	}
}

func FuzzCompareNatural(f *testing.F) {
	f.Add("img2", "img10", "img02")
	f.Add("7", "", "007x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba := compareNatural(a, b), compareNatural(b, a)
		if ab != -ba {
			t.Errorf("compare(%q, %q) = %d, reversed %d", a, b, ab, ba)
		}
		if (ab == 0) != (a == b) {
			t.Errorf("compare(%q, %q) = %d", a, b, ab)
		}
		if bc := compareNatural(b, c); ab < 0 && bc < 0 && compareNatural(a, c) >= 0 {
			t.Errorf("%q < %q < %q, but not the first < the last", a, b, c)
		}
	})
}

func TestRowsFollowTheOrderOfTheTasks(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, task := range []string{"zoom", "hdr", "gaussian_deblur", "super_resolution", "inpaint_random", "denoise", "inpaint_box"} {
		results = append(results, result(t, task, "ddiff", "a.png", 0))
	}
	builtin := []string{"super_resolution", "inpaint_box", "inpaint_random", "gaussian_deblur", "hdr", "denoise", "zoom"}
	own := operator.Set{{Name: "zoom", Label: "Zoom lens"}, {Name: "hdr", Label: "HDR"}}
	listed := []string{"zoom", "hdr", "denoise", "gaussian_deblur", "inpaint_box", "inpaint_random", "super_resolution"}
	for _, tt := range []struct {
		tasks operator.Set
		want  []string
		label string // of hdr
	}{{nil, builtin, "High dynamic range"}, {own, listed, "HDR"}} {
		c := testCampaign()
		c.Tasks = tt.tasks
		s, err := Write(t.Context(), newMemory(), c, stream(results))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.Rows {
			got = append(got, r.Task)
			if r.Task == "hdr" && r.Label != tt.label {
				t.Errorf("label %q, want %q", r.Label, tt.label)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("order = %q, want %q", got, tt.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	if got, want := printable("a\x1b[31m\tü\n\u202e"), "a?[31m?ü??"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
}
