package output

import (
	"time"

	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// Live is a run in this process, which reports its progress. Its methods may be called concurrently.
type Live struct {
	*Backend
	campaign *campaign
}

// NewLive returns the backend of a run that begins.
func NewLive(spec *manifest.Spec, o result.Output) *Live {
	b := &Backend{changed: make(chan struct{})}
	c := newCampaign(spec.ID(), o, b.announce)
	c.record.Spec, c.record.Precision = *spec, spec.Precision
	c.begun = time.Now().UTC()
	c.record.Phase, c.record.Submitted = manifest.PhaseRunning, c.begun
	c.live, c.read = true, false
	b.campaigns = append(b.campaigns, c)
	return &Live{Backend: b, campaign: c}
}

// Entered reports the number of items that were read so far, and whether these are all.
func (l *Live) Entered(items int, complete bool) {
	c := l.campaign
	c.mu.Lock()
	c.counts.Items, c.read = items, complete
	c.mu.Unlock()
	c.moved()
}

// Settled reports an item in its final state.
func (l *Live) Settled(r manifest.Result) {
	c := l.campaign
	if !c.add(r) {
		return
	}
	if r.Finished.After(c.begun) { // else an earlier run restored it
		c.mu.Lock()
		c.recent = append(c.recent, time.Now())
		c.mu.Unlock()
	}
	c.moved()
}

// Ended reports the end of the run. Its report is written.
func (l *Live) Ended(err error) {
	c := l.campaign
	c.mu.Lock()
	c.record.Phase, c.record.Finished = manifest.PhaseFinished, time.Now().UTC()
	if err != nil {
		c.record.Phase, c.record.Reason = manifest.PhaseCancelled, err.Error()
	}
	c.mu.Unlock()
	c.moved()
}
