package archive

import (
	"reflect"
	"strings"
	"testing"

	"ddiff/manifest"
)

// TestLogAnswer: an answer is read back; one that expands beyond its limit is refused before it fills the memory.
func TestLogAnswer(t *testing.T) {
	t.Parallel()
	want, got := logAnswer{Attempts: []manifest.AttemptLog{{ID: "a", Lines: []string{"b"}}}, Last: "c"}, logAnswer{}
	data, err := pack(want)
	if err == nil {
		err = unpack(data, &got)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	bomb := logAnswer{Last: strings.Repeat("x", maxUnpacked)}
	if data, err = pack(bomb); err != nil {
		t.Fatal(err)
	}
	if err := unpack(data, &got); err == nil || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("decode: %v", err)
	}
}
