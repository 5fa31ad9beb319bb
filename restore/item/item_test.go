package item_test

import (
	"strings"
	"testing"

	"ddiff/restore/item"
)

// An identity is the first half of an id, so that a shorter id, or one that is not hexadecimal, has none.
func TestParseIdentity(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		strings.Repeat("ab", 16): true, strings.Repeat("ab", 32): true, strings.Repeat("ab", 16) + "zz": true,
		strings.Repeat("ab", 16)[1:]: false, strings.Repeat("zz", 16): false, "": false,
	} {
		k, ok := item.ParseIdentity(id)
		if ok != want || ok && (k[0] != 0xab || k[15] != 0xab) {
			t.Errorf("%q: %x, %v, want %v", id, k, ok, want)
		}
	}
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{item.Key("a", item.FileResult): "a", item.Key("a", item.FileTruth): "", "x/result.json": "", "items/a/b/result.json": "", "items/a": "", "": ""} {
		if id, ok := item.ResultOf(key); ok != (want != "") || ok && id != want {
			t.Errorf("%q: %q, %v", key, id, ok)
		}
	}
}
