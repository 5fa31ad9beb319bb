package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/coordinator/health"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

const (
	// maxStarts is the number of starts without progress after which a campaign is parked.
	maxStarts = 2
	// unmarkTimeout limits the removal of a start at the end of a coordinator.
	unmarkTimeout = 5 * time.Second
)

// starts counts the starts of a campaign in its record.
type starts struct {
	*campaign
	health   *health.Checker
	suspects chan struct{} // has room for one campaign of the coordinator
	started  bool          // a start here is in the record
	suspect  bool          // holds suspects
}

// count counts a start of a campaign whose dataset is not read, or rejects the campaign if maxStarts coordinators have died in
// its start. A campaign that may have ended a coordinator starts while no other such campaign does, so that only one is to blame.
func (s *starts) count(ctx context.Context, complete bool) error {
	if complete {
		return nil
	}
	died := 0
	if last := s.rec.Start; last != nil {
		resumed := last.Parked && s.rec.Phase.Ended() && s.rec.Wanted == record.WantRun
		if died = last.Count; last.Process == s.health.ID() && !last.Parked {
			died-- // this process has survived the last start, which was not taken back
		} else if died >= maxStarts && !resumed && last.Process != "" && !last.Parked && s.health.Lives(ctx, last.Process) {
			died-- // so has another one, which could not reach the queue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if died >= maxStarts && !resumed {
			return s.park(ctx, last)
		}
		if resumed {
			died = 0
		}
	}
	if died > 0 {
		select {
		case s.suspects <- struct{}{}:
			s.suspect = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.started = true // also if the write fails: the board may have it
	return s.save(ctx, func(c *record.Campaign) { c.Start = s.newStart(died + 1) })
}

// newStart is the record of a start in this process.
func (s *starts) newStart(count int) *record.Start {
	return &record.Start{Count: count, Process: s.health.ID(), Coordinator: s.cfg.Name, At: s.cfg.Now().UTC()}
}

// park rejects the campaign. A person may resume it.
func (s *starts) park(ctx context.Context, last *record.Start) error {
	err := s.save(ctx, func(c *record.Campaign) {
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

// progress forgets the earlier starts after a stored window or when the campaign waits for others, and all when the dataset is read.
func (s *starts) progress(ctx context.Context, complete bool) error {
	if !s.started || !s.here(s.rec) || s.rec.Start.Count == 1 && !complete {
		return nil
	}
	s.clearSuspicion()
	return s.saveIf(ctx, s.here, func(c *record.Campaign) {
		if c.Start = nil; !complete {
			c.Start = s.newStart(1)
		}
	})
}

// takeBack takes the start back at the end of the runner, because this coordinator has survived it.
func (s *starts) takeBack(ctx context.Context) {
	s.clearSuspicion()
	if !s.started {
		return
	}
	s.started = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	err := s.saveIf(ctx, s.here, func(c *record.Campaign) {
		n := c.Start.Count - 1
		if c.Start = nil; n > 0 {
			c.Start = s.newStart(n)
			c.Start.Process = "" // of a coordinator that has died
		}
	})
	if err != nil && !errors.Is(err, queue.ErrNoRecord) {
		s.log.Warn("could not take back the start of the campaign", "reason", err)
	}
}

// here reports whether the last start that counts was in this process.
func (s *starts) here(c *record.Campaign) bool {
	return c.Start != nil && c.Start.Process == s.health.ID() && !c.Start.Parked
}

// clearSuspicion lets the next campaign start that may have ended a coordinator.
func (s *starts) clearSuspicion() {
	if s.suspect {
		s.suspect = false
		<-s.suspects
	}
}
