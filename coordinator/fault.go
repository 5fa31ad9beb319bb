package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ddiff/internal/record"
)

// longestFault is the longest time that a report may state.
const longestFault = 30 * 24 * time.Hour

// faults has the reports of workers whose environment fails.
type faults struct {
	pending *record.Fault        // pauses the campaign
	last    map[string]time.Time // last report, by worker
}

// decodeFault reads a report.
func decodeFault(payload []byte) (f record.Fault, err error) {
	if err = json.Unmarshal(payload, &f); err == nil && (f.Seconds <= 0 || f.Seconds > longestFault.Seconds()) {
		err = fmt.Errorf("seconds is %g, want above 0 and at most %g", f.Seconds, longestFault.Seconds())
	}
	return f, err
}

// limit is the time without an outcome after which a fault pauses the campaign.
func limit(f record.Fault) time.Duration { return time.Duration(f.Seconds * float64(time.Second)) }

// note notes a report. The campaign is to pause if no worker has finished an item in the reported time, and no worker works
// on it that has not reported a fault of late: a single worker with wrong credentials does not stop the others, whose items
// may take longer. progress is the time of the last outcome; works is health.Workers.Works of the campaign.
func (s *faults) note(f record.Fault, now, progress time.Time, works func(except func(name string) bool) bool) (othersWork bool) {
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	s.last[f.Worker] = now
	othersWork = works(func(name string) bool {
		at, reported := s.last[name]
		return reported && now.Sub(at) <= 2*limit(f)
	})
	if now.Sub(progress) >= limit(f) && !othersWork {
		s.pending = &f
	}
	return othersWork
}

// take returns the fault that pauses the campaign, once; nil without one.
func (s *faults) take() *record.Fault {
	f := s.pending
	s.pending = nil
	return f
}

// noteFault handles a worker's report that its environment fails and needs a person.
func (r *runner) noteFault(payload []byte) {
	f, err := decodeFault(payload)
	if err != nil {
		r.log.Error("skipped a report that cannot be read", "reason", err)
		return
	}
	now := r.s.cfg.Now()
	works := r.faults.note(f, now, r.outcomes.progress, func(except func(name string) bool) bool { return r.s.workers.Works(r.id, except) })
	r.log.Warn("the environment of a worker fails", "worker", f.Worker, "reason", f.Reason, "without_outcome", now.Sub(r.outcomes.progress),
		"others_work", works)
}

// pauseAfterFault pauses the campaign after noteFault.
func (r *runner) pauseAfterFault(ctx context.Context) error {
	f := r.faults.take()
	if f == nil || r.rec.Wanted != record.WantRun {
		return nil
	}
	return r.pauseBecause(ctx, fmt.Sprintf("no item was finished for %v, and the environment of worker %s fails: %s; mend it and resume",
		limit(*f).Round(time.Second), f.Worker, f.Reason))
}
