package coordinator

import (
	"cmp"
	"context"
	"strings"
	"time"

	"ddiff/internal/record"
)

// idleAfter is the time without an outcome and without a leased item after which a campaign is not worked on: workers serve a higher class.
const idleAfter = 10 * time.Second

// publishStatus writes the campaign's status to the board if it has changed or is old.
func (r *runner) publishStatus(ctx context.Context, leased int) error {
	return r.publishStatusOf(ctx, r.rec, leased)
}

// publishStatusOf is publishStatus with the phase and the reason of a record that is not written yet.
func (r *runner) publishStatusOf(ctx context.Context, c *record.Campaign, leased int) error {
	now := r.s.cfg.Now()
	s := record.Status{
		ID: r.id, Phase: c.Phase, TraceID: traceOf(c).TraceID().String(), Reason: c.Reason, Warning: r.windows.describe(), Complete: r.windows.complete,
		Windows: r.windows.published,
		Counts:  r.outcomes.ledger.Total(leased, c.Phase == record.PhaseCancelled),
		Workers: r.s.workers.Live(r.rec.Spec.Pool), Ended: r.s.workers.Ended(), At: now.UTC(),
	}
	u := r.used()
	s.Seconds, s.Cost, s.Uses = u.Seconds, u.Cost, u.Uses
	if r.opening || !r.outcomes.caught {
		r.keepCounts(&s)
	}
	if !s.Phase.Ended() {
		s.Problem = cmp.Or(r.s.problem(), r.reader.waiting.reason(), r.s.workers.Refusal(r.id, r.rec.Spec.Pool), r.s.workers.Problem(r.id), r.lostWorkers())
		s.Rate, _ = r.outcomes.pace.rate(now)
		if s.Workers > 0 && (s.Counts.Running > 0 || now.Sub(r.outcomes.progress) < idleAfter) { // otherwise the rate is that of the past
			s.Left, s.LeftLow, s.LeftHigh = r.outcomes.pace.remaining(now, s.Counts.Pending+s.Counts.Running)
		}
		s.Late, r.slack, r.slackKnown = c.Lateness(s, r.status.last.Late, now)
		if _, near := r.compareBudgets(); !r.opening { // keepCounts has kept the warning
			for _, text := range []string{near, r.holdNear, s.Late.Sentence(c.Spec.Deadline)} {
				s.Warning = strings.Trim(s.Warning+"; "+text, "; ")
			}
		}
	}
	s.Problem, s.Warning = brief(s.Problem), brief(s.Warning)
	if s.Late != r.status.last.Late && s.Late != "" {
		r.log.Warn(s.Late.Sentence(c.Spec.Deadline), "left_s", s.Left, "left_low_s", s.LeftLow, "left_high_s", s.LeftHigh)
	}
	return r.status.publish(ctx, s)
}

// rereadLimit bounds the time in which a status has the counts of the last one while outcomes are read again: the stream may have lost them.
const rereadLimit = time.Minute

// hurry raises the share of a campaign that may miss its deadline within its class, until its end: a share that fell again when the campaign
// catches up would make it late again.
func (r *runner) hurry(ctx context.Context) error {
	if r.status.last.Late == "" || r.rec.Urgent || !r.rec.Open() {
		return nil
	}
	return r.save(ctx, func(c *record.Campaign) { c.Urgent = true })
}

// keepCounts replaces the counts of a status by those of the last one, also of another leader: before the ledger is complete, and as long
// as it has fewer outcomes because it gets those that the last leader had read from the stream again. A new campaign has no counts.
func (r *runner) keepCounts(s *record.Status) {
	last, ok := r.status.last, r.status.last.ID != ""
	settled := func(c record.Counts) int { return c.Done + c.Failed + c.Dead }
	switch {
	case r.opening && ok:
		s.Complete, s.Windows, s.Warning = last.Complete, last.Windows, last.Warning
	case r.opening:
		return
	case !ok || settled(last.Counts) <= settled(s.Counts) || r.s.cfg.Now().Sub(r.outcomes.since) > rereadLimit:
		r.outcomes.caught = true
		return
	}
	s.Counts, s.Seconds, s.Cost, s.Uses = endedCounts(last.Counts, s.Phase), last.Seconds, last.Cost, last.Uses
}

// endedCounts returns the counts of the last status in a phase. No item runs in an ended campaign.
func endedCounts(n record.Counts, phase record.Phase) record.Counts {
	if phase.Ended() {
		n.Pending, n.Running = n.Pending+n.Running, 0
	}
	if phase == record.PhaseCancelled {
		n.Cancelled, n.Pending = n.Cancelled+n.Pending, 0
	}
	return n
}

// problem describes what delays the campaigns, for people; it is empty if nothing does.
func (s *Service) problem() string {
	if p := s.health.Problem(); p != "" {
		return p
	}
	return s.streams.Problem()
}
