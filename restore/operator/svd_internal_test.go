package operator

import "testing"

// The largest side is decomposed, with an axis of another length.
func TestLargestSVD(t *testing.T) {
	t.Parallel()
	if _, err := bandSVD(areaDown(maxSVD, maxSVD), areaDown(8, 8)); err != nil {
		t.Errorf("side %d: %v", maxSVD, err)
	}
}
