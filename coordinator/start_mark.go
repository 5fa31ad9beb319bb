package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

const (
	// maxStarts is the number of starts without progress after which a campaign is parked.
	maxStarts = 2
	// unmarkTimeout limits the removal of a mark at the end of a coordinator.
	unmarkTimeout = 5 * time.Second
)

// startMark is the record of a campaign that a coordinator starts, until it has read the dataset. A coordinator that ends in an
// orderly way takes its start back, so that the record counts the starts that have ended a coordinator.
type startMark struct {
	// Starts counts the starts since the last stored window.
	Starts int `json:"starts"`
	// Parked: the campaign is rejected because of its starts. A person may resume it.
	Parked bool `json:"parked,omitempty"`
	// Coordinator and At describe the last start, for people.
	Coordinator string    `json:"coordinator"`
	At          time.Time `json:"at"`
}

func (m startMark) equal(other startMark) bool {
	return m.Starts == other.Starts && m.Parked == other.Parked && m.Coordinator == other.Coordinator && m.At.Equal(other.At)
}

// survivedStarts has, by campaign, the marks of starts that this process has survived and that the board may still have, because
// it did not answer. It is safe for concurrent use.
type survivedStarts struct {
	mu   sync.Mutex
	byID map[string][]startMark
}

func (s *survivedStarts) add(id string, marks ...startMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string][]startMark{}
	}
	s.byID[id] = append(s.byID[id], marks...)
}

func (s *survivedStarts) clear(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// has reports whether a mark on the board counts a start that this process has survived.
func (s *survivedStarts) has(id string, mark startMark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mark.Starts > 0 && !mark.Parked && slices.ContainsFunc(s.byID[id], mark.equal)
}

// markStart counts a start of the campaign, or rejects the campaign if maxStarts coordinators have died in its start. A
// campaign that may have ended a coordinator starts while no other such campaign does, so that only one is to blame.
func (r *runner) markStart(ctx context.Context) error {
	if r.s.cfg.run != nil || r.rec.Complete {
		return nil
	}
	mark, revision, err := r.readMark(ctx)
	if err != nil {
		return err
	}
	if r.s.survived.has(r.id, mark) {
		mark.Starts--
	}
	if mark.Parked && r.rec.Phase.Ended() && r.rec.Wanted == manifest.WantRun {
		mark = startMark{} // a person has resumed it
	}
	if mark.Starts >= maxStarts {
		return r.park(ctx, mark, revision)
	}
	if mark.Starts > 0 {
		select {
		case r.s.suspects <- struct{}{}:
			r.suspect = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := r.writeMark(ctx, r.starts(mark.Starts+1), revision); err != nil {
		return err
	}
	r.s.survived.clear(r.id)
	return nil
}

// starts is a mark of this coordinator.
func (r *runner) starts(n int) startMark {
	return startMark{Starts: n, Coordinator: r.s.cfg.Name, At: r.s.cfg.Now().UTC()}
}

// park rejects the campaign with the reason.
func (r *runner) park(ctx context.Context, mark startMark, revision uint64) error {
	last := fmt.Sprintf("%s at %s", mark.Coordinator, mark.At.UTC().Format(time.DateTime))
	if !mark.Parked {
		mark.Parked = true
		if err := r.writeMark(ctx, mark, revision); err != nil {
			return err
		}
		r.mark = startMark{} // it stays
	}
	return rejection{fmt.Errorf("%d coordinators have died while they started this campaign, the last was %s: its prior or its dataset may need "+
		"more memory than there is; mend it and submit it again, or resume it to try again", mark.Starts, last)}
}

// readMark reads the mark; without one it is zero, with revision 0.
func (r *runner) readMark(ctx context.Context) (mark startMark, revision uint64, err error) {
	data, revision, err := r.s.cfg.Board.Get(ctx, manifest.KeyStartPrefix+r.id)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		return mark, 0, nil
	case err != nil:
		return mark, 0, fmt.Errorf("read the starts of campaign %s: %w", r.id, err)
	}
	if json.Unmarshal(data, &mark) != nil || mark.Starts < 0 {
		r.log.Warn("replaced a damaged record of starts", "record", manifest.KeyStartPrefix+r.id)
		mark = startMark{}
	}
	return mark, revision, nil
}

// writeMark replaces the mark at a revision.
func (r *runner) writeMark(ctx context.Context, mark startMark, revision uint64) error {
	data, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	var next uint64
	if revision == 0 {
		next, err = r.s.cfg.Board.Create(ctx, manifest.KeyStartPrefix+r.id, data)
	} else {
		next, err = r.s.cfg.Board.Update(ctx, manifest.KeyStartPrefix+r.id, data, revision)
	}
	if err != nil {
		r.attempted = mark // the board may have it
		return fmt.Errorf("count a start of campaign %s: %w", r.id, err)
	}
	r.mark, r.markRevision, r.attempted = mark, next, startMark{}
	return nil
}

// findAttempted adopts the mark of a write that was interrupted if the board has it.
func (r *runner) findAttempted(ctx context.Context) error {
	want := r.attempted
	if want.Starts == 0 {
		return nil
	}
	r.attempted = startMark{}
	got, revision, err := r.readMark(ctx)
	if err == nil && got.equal(want) {
		r.mark, r.markRevision = got, revision
	}
	return err
}

// noteProgress takes the earlier starts back after a stored window, and the mark when the dataset is read.
func (r *runner) noteProgress(ctx context.Context) error {
	switch {
	case r.mark.Starts == 0:
		return nil
	case r.complete:
		return r.removeMark(ctx)
	case r.mark.Starts == 1:
		return nil
	}
	r.clearSuspicion()
	return r.writeMark(ctx, r.starts(1), r.markRevision)
}

// unmarkStart takes the start back, because this coordinator has survived it.
func (r *runner) unmarkStart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	r.takeBack(ctx)
}

// takeBack takes the start back. If the board does not answer, the next start in this process does.
func (r *runner) takeBack(ctx context.Context) {
	defer r.clearSuspicion()
	own := []startMark{r.mark, r.attempted}
	err := r.findAttempted(ctx)
	switch {
	case err != nil || r.mark.Starts == 0:
	case r.mark.Starts > 1:
		err = r.writeMark(ctx, r.starts(r.mark.Starts-1), r.markRevision)
	default:
		err = r.removeMark(ctx)
	}
	if err != nil {
		r.log.Warn("could not take back the start of the campaign", "reason", err)
		r.s.survived.add(r.id, own...)
	}
	r.mark, r.attempted = startMark{}, startMark{}
}

// removeMark removes the mark.
func (r *runner) removeMark(ctx context.Context) error {
	defer r.clearSuspicion()
	if err := board.IgnoreConflict(r.s.cfg.Board.DeleteAt(ctx, manifest.KeyStartPrefix+r.id, r.markRevision)); err != nil {
		return fmt.Errorf("remove the starts of campaign %s: %w", r.id, err)
	}
	r.mark = startMark{}
	return nil
}

// clearSuspicion lets the next campaign start that may have ended a coordinator.
func (r *runner) clearSuspicion() {
	if r.suspect {
		r.suspect = false
		<-r.s.suspects
	}
}
