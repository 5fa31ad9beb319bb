package onnxruntime

import (
	"os"
	"strings"
	"testing"

	"ddiff/internal/regular"
)

// The embedded kernels are those of kernels.cu.
func TestKernelsAreCompiled(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("kernels.cu")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(ptx, "\n"); !strings.HasSuffix(first, strings.TrimPrefix(regular.SHA256(source), "sha256:")) {
		t.Errorf("kernels.ptx begins with %q: run make kernels", first)
	}
}
