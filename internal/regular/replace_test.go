package regular_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/regular"
)

// Replace leaves no temporary file, also when it fails.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, strings.Repeat("a", 255)) // the longest name
	for _, text := range []string{"old", "new"} {
		if err := regular.Replace(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != text {
			t.Errorf("read %q, %v; want %q", data, err, text)
		}
	}
	if err := regular.Replace(dir, nil, 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	for _, pattern := range []string{filepath.Join(dir, ".?*"), filepath.Join(filepath.Dir(dir), ".?*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) != 0 {
			t.Errorf("temporary files: %v, %v", left, err)
		}
	}
}
