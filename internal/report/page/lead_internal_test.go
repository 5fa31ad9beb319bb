package page

import (
	"strings"
	"testing"
)

// TestDegradedSentence: the verb of the first sentence agrees with the number of images.
func TestDegradedSentence(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "one image was degraded for ", 2: "two images were degraded for "} {
		if got := degraded(n, 1, true, []string{"Denoising"}, []string{"σ 0.05"}, []string{"64 × 64"}); !strings.HasPrefix(got, want) {
			t.Errorf("%d images: %q", n, got)
		}
	}
}
