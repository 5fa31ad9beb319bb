package result

import (
	"testing"

	"ddiff/restore/item"
)

func TestScoredPictures(t *testing.T) {
	t.Parallel()
	both := map[string]string{item.FileTruth: "12", item.FileRestored: "34"}
	// The first 16 bytes of: printf '12 34' | sha256sum
	const want = "8e2ed14846c39b01de87a4a26aa5facd"
	if got := ScoredPictures(&item.Result{Artifacts: both}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name := range both {
		if got := ScoredPictures(&item.Result{Artifacts: map[string]string{name: "12"}}); got != "" {
			t.Errorf("%s alone: %s", name, got)
		}
	}
}
