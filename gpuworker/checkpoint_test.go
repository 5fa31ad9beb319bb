package gpuworker_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// The time of an item includes that of the steps before its checkpoint.
func TestTimeOfResumedItem(t *testing.T) {
	t.Parallel()
	all := items(t, 1)
	q, s := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	cfg, p := config(t, q, s), newPace()
	cfg.Steps, cfg.Now = p.steps, now
	w := start(t, cfg)
	<-p.made
	later.Add(int64(time.Hour))
	w.drain()
	close(p.next)
	w.wait(t)
	cfg = config(t, q, s)
	cfg.Now = now
	w = start(t, cfg)
	if r := results(t, q, 1)[all[0].Name]; r.Seconds < 3600 || r.Seconds > 7200 {
		t.Errorf("the item took %g s, want an hour and the rest of its steps", r.Seconds)
	}
	w.stop(t)
}

// An item that keeps states begins again after an interruption: its checkpoint lacks those before.
func TestStatesOfResumedItem(t *testing.T) {
	t.Parallel()
	all := items(t, 1)
	all[0].KeepStates = "every 1"
	q, s := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	cfg, p := config(t, q, s), newPace()
	cfg.Steps = p.steps
	w := start(t, cfg)
	<-p.made
	w.drain()
	close(p.next)
	w.wait(t)
	w = start(t, config(t, q, s))
	id := results(t, q, 1)[all[0].Name].Item.ID
	states, err := raster.DecodeMeasurement(get(t, s, id, item.FileStates))
	must(t, err)
	var curves item.Trace
	must(t, json.Unmarshal(get(t, s, id, item.FileTrace), &curves))
	if steps := len(curves[item.CurveTimestep]); states.Shape[0] != steps+1 || steps < 2 {
		t.Errorf("states of the shape %v after %d steps", states.Shape, steps)
	}
	if res := wantStored(t, s, id); res.Artifacts[item.FileStatesSheet] == "" {
		t.Errorf("artifacts %v", res.Artifacts)
	}
	w.stop(t)
}
