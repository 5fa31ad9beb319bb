package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// statusInterval is how often an unchanged status is published.
const statusInterval = 5 * time.Second

// idleAfter is the time without an outcome and without a leased item after which a campaign is not worked on: workers serve a higher class.
const idleAfter = 10 * time.Second

// publishStatus writes the campaign's status to the board if it has changed or is old.
func (r *runner) publishStatus(ctx context.Context, leased int) error {
	return r.publishStatusOf(ctx, r.rec, leased)
}

// publishStatusOf is publishStatus with the phase and the reason of a record that is not written yet.
func (r *runner) publishStatusOf(ctx context.Context, c *manifest.Campaign, leased int) error {
	now := r.s.cfg.Now()
	s := manifest.Status{
		ID: r.id, Phase: c.Phase, TraceID: traceOf(c).TraceID().String(), Reason: c.Reason, Warning: r.windows.describe(), Complete: r.windows.complete,
		Counts:  r.outcomes.ledger.Total(leased, c.Phase == manifest.PhaseCancelled),
		Workers: r.s.workers.Live(r.rec.Spec.Pool), Ended: r.s.workers.Ended(), At: now.UTC(),
	}
	u := r.used()
	s.Seconds, s.Cost = u.Seconds, u.Cost
	if r.opening || !r.outcomes.caught {
		r.keepCounts(&s)
	}
	if !s.Phase.Ended() {
		if _, near := r.compareBudgets(); near != "" && !r.opening { // keepCounts has kept it
			s.Warning = strings.Trim(s.Warning+"; "+near, "; ")
		}
		s.Problem = cmp.Or(r.s.problem(), r.reader.waiting.reason(), r.s.workers.Refusal(r.id, r.rec.Spec.Pool), r.s.workers.Problem(r.id))
		s.Rate, _ = r.outcomes.pace.rate(now)
		if s.Workers > 0 && (s.Counts.Running > 0 || now.Sub(r.outcomes.progress) < idleAfter) { // otherwise the rate is that of the past
			s.Left, s.LeftLow, s.LeftHigh = r.outcomes.pace.remaining(now, s.Counts.Pending+s.Counts.Running)
		}
	}
	if s.Counts == r.status.Counts && s.Phase == r.status.Phase && s.Workers == r.status.Workers &&
		s.Problem == r.status.Problem && s.Warning == r.status.Warning &&
		s.At.Sub(r.status.At) < statusInterval {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.s.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+r.id, data); err != nil {
		return fmt.Errorf("publish status: %w", err)
	}
	r.status = s
	return nil
}

// rereadLimit bounds the time in which a status has the counts of the last one while outcomes are read again: the stream may have lost them.
const rereadLimit = time.Minute

// keepCounts replaces the counts of a status by those of the last one, also of another leader: before the ledger is complete, and as long
// as it has fewer outcomes because it gets those that the last leader had read from the stream again. A new campaign has no counts.
func (r *runner) keepCounts(s *manifest.Status) {
	last, ok := r.status, r.status.ID != ""
	settled := func(c manifest.Counts) int { return c.Done + c.Failed + c.Dead }
	switch {
	case r.opening && ok:
		s.Complete, s.Warning = last.Complete, last.Warning
	case r.opening:
		return
	case !ok || settled(last.Counts) <= settled(s.Counts) || r.s.cfg.Now().Sub(r.outcomes.since) > rereadLimit:
		r.outcomes.caught = true
		return
	}
	s.Counts, s.Seconds, s.Cost = endedCounts(last.Counts, s.Phase), last.Seconds, last.Cost
}

// readStatus reads the status that this or another leader has published. Without one that can be read, the next is the first.
func (r *runner) readStatus(ctx context.Context) error {
	r.status = manifest.Status{}
	data, _, err := r.s.cfg.Board.Get(ctx, manifest.KeyStatusPrefix+r.id)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		if r.rec.Last != nil {
			r.status = *r.rec.Last
		}
	case err != nil:
		return fmt.Errorf("read the last status: %w", err)
	case json.Unmarshal(data, &r.status) != nil:
		r.status = manifest.Status{}
	}
	return nil
}

// endedCounts returns the counts of the last status in a phase. No item runs in an ended campaign.
func endedCounts(n manifest.Counts, phase manifest.Phase) manifest.Counts {
	if phase.Ended() {
		n.Pending, n.Running = n.Pending+n.Running, 0
	}
	if phase == manifest.PhaseCancelled {
		n.Cancelled, n.Pending = n.Cancelled+n.Pending, 0
	}
	return n
}

// publishInterruption names the error that has interrupted the campaign in its last status: a damaged record, for example,
// needs a person. It is best effort, and leaves the status of an ended campaign alone.
func (r *runner) publishInterruption(ctx context.Context, cause error) {
	s := r.status
	if s.ID == "" {
		s = manifest.Status{ID: r.id, Phase: r.rec.Phase}
	}
	if s.Phase.Ended() {
		return
	}
	reason := "interrupted, will retry: " + strings.Join(strings.Fields(cause.Error()), " ")
	s.Problem, s.At = cmp.Or(r.s.problem(), r.reader.waiting.reason(), reason), r.s.cfg.Now().UTC()
	data, err := json.Marshal(s)
	if err == nil {
		err = r.s.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+r.id, data)
	}
	if err != nil {
		r.log.Debug("could not publish the interruption", "reason", err)
	}
}

// problem describes what delays the campaigns, for people; it is empty if nothing does.
func (s *Service) problem() string {
	if p := s.health.Problem(); p != "" {
		return p
	}
	return s.streams.Problem()
}
