package prior

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlacesOfBase: base.onnx is found as a release and as the source tree have it; another file under its name is refused.
func TestPlacesOfBase(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if _, err := readBaseOf(root); err == nil || !strings.Contains(err.Error(), "bundled:base is not installed: "+root) {
		t.Errorf("nowhere: %v", err)
	}
	if _, err := readBaseOf("../../.."); err != nil {
		t.Errorf("in the source tree: %v", err)
	}
	file := filepath.Join(root, "lib", "ddiff", "base.onnx")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bundled, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readBaseOf(root); err == nil || !strings.Contains(err.Error(), file+" is another file") {
		t.Errorf("another file: %v", err)
	}
}
