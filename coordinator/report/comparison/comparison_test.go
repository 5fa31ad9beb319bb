package comparison

import (
	"testing"

	"ddiff/coordinator/report/sweep"
)

// TestProblemsInOneLine describes problems by the properties that vary.
func TestProblemsInOneLine(t *testing.T) {
	t.Parallel()
	p := []sweep.Problem{{Task: "hdr", Params: "scale=2", Sigma: 0.05, Size: "64x64"}}
	if got := contrast(p, p); got != "A has hdr scale=2 σ=0.05 64x64, B has hdr scale=2 σ=0.05 64x64" {
		t.Errorf("contrast: %s", got)
	}
	for _, got := range []string{contrast(nil, p), contrast(p, nil)} {
		if got != "one side has no restored item" {
			t.Errorf("contrast: %s", got)
		}
	}
}
