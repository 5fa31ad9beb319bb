package archive

import (
	"testing"

	"ddiff/manifest"
)

// TestWithRequests: a command that a user sends after a crash between the two writes of a change is kept, and executed once; a backup of the board,
// which users have not written since, undoes nothing.
func TestWithRequests(t *testing.T) {
	t.Parallel()
	stored := &manifest.Campaign{
		Wanted: manifest.WantPause, Asked: 2, Stored: 5, Phase: manifest.PhaseQueued,
		Answered: []manifest.Answer{{ID: "answered"}},
	}
	backup := &manifest.Campaign{Wanted: manifest.WantRun, Asked: 1, Stored: 3, Commands: []manifest.Command{{ID: "answered"}}}
	if got := withRequests(stored, backup); got.Wanted != manifest.WantPause || len(got.Commands) != 0 || got.Asked != 2 {
		t.Errorf("a backup: %+v", got)
	}
	behind := &manifest.Campaign{
		Wanted: manifest.WantCancel, Asked: 3, Stored: 4, Phase: manifest.PhaseRunning,
		Commands: []manifest.Command{{ID: "answered"}, {ID: "new"}},
	}
	got := withRequests(stored, behind)
	if got.Wanted != manifest.WantCancel || len(got.Commands) != 1 || got.Commands[0].ID != "new" || got.Phase != manifest.PhaseQueued || got.Stored != 5 || got.Asked != 3 {
		t.Errorf("a board that a crash has left behind: %+v", got)
	}
}
