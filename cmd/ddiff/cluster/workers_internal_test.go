package cluster

import (
	"strings"
	"testing"

	"ddiff/internal/record"
)

// TestAttackFrozenWorker: a worker whose process is stopped is not ready, whatever its last beat says.
func TestAttackFrozenWorker(t *testing.T) {
	t.Parallel()
	for begin, b := range map[string]record.Beat{
		"ready":       {Age: record.BeatLife.Seconds() - 1},
		"silent":      {Age: record.BeatLife.Seconds()},
		"silent: ":    {Age: 300, Suspended: "no disk"},
		"suspended: ": {Suspended: "no disk"},
		"stage":       {Age: 300, Hung: "stage solve"},
	} {
		if got := workerState(b); !strings.HasPrefix(got, begin) {
			t.Errorf("%+v is %q, want %q", b, got, begin)
		}
	}
}
