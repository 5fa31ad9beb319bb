package manifest

import (
	"strings"
	"testing"
)

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"steps", "steps", 0},
		{"stpes", "steps", 1}, // a swap is one slip
		{"step", "steps", 1},
		{"stepps", "steps", 1},
		{"stops", "steps", 1},
		{"kitten", "sitting", 3}, // the textbook pair
		{"ca", "abc", 3},         // optimal string alignment; unrestricted would be 2
	} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	valid := []string{"a", "b", "gamma0", "t0", "t_gamma"}
	for name, want := range map[string]string{
		"zb":                     "", // all of "b" would be replaced
		"gamma":                  "gamma0",
		"tgamma":                 "t_gamma",
		"t1":                     "t0",
		"x":                      "", // every name of one letter is one replacement away
		"beta":                   "",
		"":                       "",
		strings.Repeat("a", 1e6): "",
	} {
		if got := nearest(name, valid); got != want {
			t.Errorf("nearest(%q) = %q, want %q", clip(name), got, want)
		}
	}
	valid = []string{"super_resolution", "hdr", "up-sampling-net", "box", strings.Repeat("long", 16)}
	for name, want := range map[string]string{
		"sr": "super_resolution", "SR": "super_resolution", "usn": "up-sampling-net", "h": "", "b": "", "s": "",
		strings.Repeat("long", 15) + "lang": valid[4], strings.Repeat("long", 16) + "l": "",
	} {
		if got := nearest(name, valid); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
	for n, want := range map[int]int{59: 59, 60: 60, 61: 63} {
		if got := clip(strings.Repeat("x", n)); len(got) != want {
			t.Errorf("clip of %d characters is %q", n, got)
		}
	}
}

func TestUnknownOfNothing(t *testing.T) {
	t.Parallel()
	if got := Unknown("parameter", "x", nil).Error(); got != `unknown parameter "x" (valid: none)` {
		t.Error(got)
	}
}
