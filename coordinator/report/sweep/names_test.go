package sweep

import (
	"strings"
	"testing"
)

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
