package gpuworker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"ddiff/queue"
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
