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
	data, _, err := want.encode()
	if err == nil {
		err = got.decode(data)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	bomb := logAnswer{Last: strings.Repeat("x", maxPageBytes)}
	data, size, err := bomb.encode()
	if err != nil || size <= maxPageBytes || len(data) > logPageBytes {
		t.Fatalf("%d bytes, %d compressed (%v)", size, len(data), err)
	}
	if err := got.decode(data); err == nil || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("decode: %v", err)
	}
}
