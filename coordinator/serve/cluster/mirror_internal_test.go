package cluster

import (
	"encoding/json"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/board/boardtest"
	"ddiff/manifest"
	"ddiff/queue"
)

// The newest record counts, whether the watch or an own write brings it.
func TestMirrorHasNewest(t *testing.T) {
	t.Parallel()
	m := newMirror()
	enter := func(change queue.Change) { m.enter(change, time.Now()) }
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Tasks = "night", "/data", []manifest.TaskSpec{{Name: "hdr"}}
	change := func(revision uint64, weight int) queue.Change {
		data, err := json.Marshal(board.NewRecord(spec, board.Order{Weight: weight}, time.Now()))
		boardtest.Must(t, err)
		return queue.Change{Key: manifest.KeyCampaignPrefix + spec.ID(), Data: data, Revision: revision}
	}
	wrote := func(c queue.Change) { m.wrote(spec.ID(), c) }
	for i, step := range []struct {
		enter func(queue.Change)
		queue.Change
		want int
	}{
		{enter, change(5, 5), 5},
		{wrote, change(7, 7), 7},
		{enter, change(6, 6), 7},
		{enter, change(8, 8), 8},
		{wrote, change(7, 7), 8}, // read before the watch brought the next
		{enter, change(9, 9), 9},
		{enter, change(2, 2), 2}, // of a board that was restored from a copy
	} {
		step.enter(step.Change)
		if all, skipped := m.list(); len(all) != 1 || len(skipped) != 0 || all[0].Campaign.Weight != step.want {
			t.Errorf("step %d: %+v, %v", i, all, skipped)
		}
	}
}
