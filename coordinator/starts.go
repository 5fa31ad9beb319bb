package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

const (
	// maxStarts is the number of starts without progress after which a campaign is parked.
	maxStarts = 2
	// unmarkTimeout limits the removal of a start at the end of a coordinator.
	unmarkTimeout = 5 * time.Second
)

// countStart counts a start of a campaign whose dataset is not read, or rejects the campaign if maxStarts coordinators have died in
// its start. A campaign that may have ended a coordinator starts while no other such campaign does, so that only one is to blame.
func (r *runner) countStart(ctx context.Context) error {
	if r.rec.Complete {
		return nil
	}
	died := 0
	if last := r.rec.Start; last != nil {
		resumed := last.Parked && r.rec.Phase.Ended() && r.rec.Wanted == manifest.WantRun
		if died = last.Count; last.Process == r.s.process && !last.Parked {
			died-- // this process has survived the last start, which was not taken back
		}
		if died >= maxStarts && !resumed {
			return r.park(ctx, last)
		}
		if resumed {
			died = 0
		}
	}
	if died > 0 {
		select {
		case r.s.suspects <- struct{}{}:
			r.suspect = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.started = true // also if the write fails: the board may have it
	return r.save(ctx, func(c *manifest.Campaign) { c.Start = r.newStart(died + 1) })
}

// newStart is the record of a start in this process.
func (r *runner) newStart(count int) *manifest.Start {
	return &manifest.Start{Count: count, Process: r.s.process, Coordinator: r.s.cfg.Name, At: r.s.cfg.Now().UTC()}
}

// park rejects the campaign. A person may resume it.
func (r *runner) park(ctx context.Context, last *manifest.Start) error {
	err := r.save(ctx, func(c *manifest.Campaign) {
		if c.Start != nil {
			c.Start.Parked = true
		}
	})
	if err != nil {
		return err
	}
	return rejection{fmt.Errorf("%d coordinators have died while they started this campaign, the last was %s at %s: its prior or its dataset may need "+
		"more memory than there is; mend it and submit it again, or resume it to try again",
		last.Count, last.Coordinator, last.At.UTC().Format(time.DateTime))}
}

// noteProgress forgets the earlier starts after a stored window or when the campaign waits for others, and all when the dataset is read.
func (r *runner) noteProgress(ctx context.Context, complete bool) error {
	if !r.started || !r.startedHere(r.rec) || r.rec.Start.Count == 1 && !complete {
		return nil
	}
	r.clearSuspicion()
	return r.saveIf(ctx, r.startedHere, func(c *manifest.Campaign) {
		if c.Start = nil; !complete {
			c.Start = r.newStart(1)
		}
	})
}

// takeStartBack takes the start back at the end of the runner, because this coordinator has survived it.
func (r *runner) takeStartBack(ctx context.Context) {
	r.clearSuspicion()
	if !r.started {
		return
	}
	r.started = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	err := r.saveIf(ctx, r.startedHere, func(c *manifest.Campaign) {
		n := c.Start.Count - 1
		if c.Start = nil; n > 0 {
			c.Start = r.newStart(n)
			c.Start.Process = "" // of a coordinator that has died
		}
	})
	if err != nil && !errors.Is(err, queue.ErrNoRecord) {
		r.log.Warn("could not take back the start of the campaign", "reason", err)
	}
}

// startedHere reports whether the last start that counts was in this process.
func (r *runner) startedHere(c *manifest.Campaign) bool {
	return c.Start != nil && c.Start.Process == r.s.process && !c.Start.Parked
}

// clearSuspicion lets the next campaign start that may have ended a coordinator.
func (r *runner) clearSuspicion() {
	if r.suspect {
		r.suspect = false
		<-r.s.suspects
	}
}
