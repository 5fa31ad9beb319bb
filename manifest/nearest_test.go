package manifest

import (
	"strings"
	"testing"
)

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
