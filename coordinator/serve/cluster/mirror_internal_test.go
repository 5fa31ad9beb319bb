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

// A mirror is current if the watch has brought the last own write, unless the board was restored from a copy.
func TestMirror(t *testing.T) {
	t.Parallel()
	m := newMirror()
	c := &Cluster{cfg: Config{Now: time.Now}}
	c.mirror.Store(m)
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Tasks = "night", "/data", []manifest.TaskSpec{{Name: "hdr"}}
	for i, step := range []struct {
		written, entered uint64
		age              time.Duration
		current          bool
	}{{0, 5, 0, true}, {7, 6, 0, false}, {7, 8, 0, true}, {7, 8, mirrorAge + time.Second, false}, {12, 2, 0, true}} {
		data, err := json.Marshal(board.NewRecord(spec, board.Order{Weight: int(step.entered)}, time.Now()))
		boardtest.Must(t, err)
		m.written = step.written
		m.enter(queue.Change{Key: manifest.KeyCampaignPrefix + spec.ID(), Data: data, Revision: step.entered}, time.Now().Add(-step.age))
		if (c.current() != nil) != step.current {
			t.Errorf("step %d: current %t", i, !step.current)
		}
		if all, skipped := m.list(); len(all) != 1 || len(skipped) != 0 || all[0].Campaign.Weight != int(step.entered) {
			t.Errorf("step %d: %+v, %v", i, all, skipped)
		}
	}
}
