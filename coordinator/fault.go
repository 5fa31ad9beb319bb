package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ddiff/manifest"
)

// longestFault is the longest time that a report may state.
const longestFault = 30 * 24 * time.Hour

// noteFault handles a worker's report that its environment fails and needs a person. The campaign pauses if no worker
// has finished an item in the reported time, and no other worker works on it: a single worker with wrong credentials does
// not stop the others, whose items may take longer.
func (r *runner) noteFault(payload []byte) {
	var f manifest.Fault
	err := json.Unmarshal(payload, &f)
	if err == nil && (f.Seconds <= 0 || f.Seconds > longestFault.Seconds()) {
		err = fmt.Errorf("seconds is %g, want above 0 and at most %g", f.Seconds, longestFault.Seconds())
	}
	if err != nil {
		r.log.Error("skipped a report that cannot be read", "reason", err)
		return
	}
	now, limit := r.s.cfg.Now(), time.Duration(f.Seconds*float64(time.Second))
	r.faulty[f.Worker] = now
	quiet := now.Sub(r.progress)
	works := r.s.workers.works(r.id, func(name string) bool {
		at, reported := r.faulty[name]
		return reported && now.Sub(at) <= 2*limit
	})
	r.log.Warn("the environment of a worker fails", "worker", f.Worker, "reason", f.Reason, "without_outcome", quiet,
		"others_work", works)
	if quiet >= limit && !works {
		r.fault = &f
	}
}

// pauseAfterFault pauses the campaign after noteFault.
func (r *runner) pauseAfterFault(ctx context.Context) error {
	f := r.fault
	r.fault = nil
	if f == nil || r.rec.Wanted != manifest.WantRun {
		return nil
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		if c.Wanted == manifest.WantRun {
			c.Wanted = manifest.WantPause
			c.Reason = fmt.Sprintf("no item was finished for %v, and the environment of worker %s fails: %s; mend it and resume",
				time.Duration(f.Seconds*float64(time.Second)).Round(time.Second), f.Worker, f.Reason)
		}
	})
}
