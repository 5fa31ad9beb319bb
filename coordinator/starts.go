package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// starts counts the starts of a campaign that end a coordinator, for a runner.
type starts struct {
	id       string
	cfg      *Config
	log      *slog.Logger
	suspects chan struct{} // has an element while a campaign starts that may have ended a coordinator
	survived *survivedStarts

	own       startMark // as written; zero without one
	attempted startMark // whose write failed; zero without one
	revision  uint64    // of own
	suspect   bool      // holds suspects
}

// count counts a start of the campaign, or rejects the campaign if maxStarts coordinators have died in its start. A
// campaign that may have ended a coordinator starts while no other such campaign does, so that only one is to blame.
//
// resumed means that a person has resumed the campaign after its end.
func (s *starts) count(ctx context.Context, resumed bool) error {
	mark, revision, err := s.read(ctx)
	if err != nil {
		return err
	}
	if s.survived.has(s.id, mark) {
		mark.Starts--
	}
	if mark.Parked && resumed {
		mark = startMark{}
	}
	if mark.Starts >= maxStarts {
		return s.park(ctx, mark, revision)
	}
	if mark.Starts > 0 {
		select {
		case s.suspects <- struct{}{}:
			s.suspect = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.write(ctx, s.mark(mark.Starts+1), revision); err != nil {
		return err
	}
	s.survived.clear(s.id)
	return nil
}

// mark is a mark of this coordinator.
func (s *starts) mark(n int) startMark {
	return startMark{Starts: n, Coordinator: s.cfg.Name, At: s.cfg.Now().UTC()}
}

// park rejects the campaign with the reason.
func (s *starts) park(ctx context.Context, mark startMark, revision uint64) error {
	last := fmt.Sprintf("%s at %s", mark.Coordinator, mark.At.UTC().Format(time.DateTime))
	if !mark.Parked {
		mark.Parked = true
		if err := s.write(ctx, mark, revision); err != nil {
			return err
		}
		s.own = startMark{} // it stays
	}
	return rejection{fmt.Errorf("%d coordinators have died while they started this campaign, the last was %s: its prior or its dataset may need "+
		"more memory than there is; mend it and submit it again, or resume it to try again", mark.Starts, last)}
}

// read reads the mark; without one it is zero, with revision 0.
func (s *starts) read(ctx context.Context) (mark startMark, revision uint64, err error) {
	data, revision, err := s.cfg.Board.Get(ctx, manifest.KeyStartPrefix+s.id)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		return mark, 0, nil
	case err != nil:
		return mark, 0, fmt.Errorf("read the starts of campaign %s: %w", s.id, err)
	}
	if json.Unmarshal(data, &mark) != nil || mark.Starts < 0 {
		s.log.Warn("replaced a damaged record of starts", "record", manifest.KeyStartPrefix+s.id)
		mark = startMark{}
	}
	return mark, revision, nil
}

// write replaces the mark at a revision.
func (s *starts) write(ctx context.Context, mark startMark, revision uint64) error {
	data, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	var next uint64
	if revision == 0 {
		next, err = s.cfg.Board.Create(ctx, manifest.KeyStartPrefix+s.id, data)
	} else {
		next, err = s.cfg.Board.Update(ctx, manifest.KeyStartPrefix+s.id, data, revision)
	}
	if err != nil {
		s.attempted = mark // the board may have it
		return fmt.Errorf("count a start of campaign %s: %w", s.id, err)
	}
	s.own, s.revision, s.attempted = mark, next, startMark{}
	return nil
}

// findAttempted adopts the mark of a write that was interrupted if the board has it.
func (s *starts) findAttempted(ctx context.Context) error {
	want := s.attempted
	if want.Starts == 0 {
		return nil
	}
	s.attempted = startMark{}
	got, revision, err := s.read(ctx)
	if err == nil && got.equal(want) {
		s.own, s.revision = got, revision
	}
	return err
}

// progress takes the earlier starts back after a stored window, and the mark when the dataset is read.
func (s *starts) progress(ctx context.Context, complete bool) error {
	switch {
	case s.own.Starts == 0:
		return nil
	case complete:
		return s.remove(ctx)
	case s.own.Starts == 1:
		return nil
	}
	s.clearSuspicion()
	return s.write(ctx, s.mark(1), s.revision)
}

// end takes the start back, because this coordinator has survived it.
func (s *starts) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	s.takeBack(ctx)
}

// takeBack takes the start back. If the board does not answer, the next start in this process does.
func (s *starts) takeBack(ctx context.Context) {
	defer s.clearSuspicion()
	own := []startMark{s.own, s.attempted}
	err := s.findAttempted(ctx)
	switch {
	case err != nil || s.own.Starts == 0:
	case s.own.Starts > 1:
		err = s.write(ctx, s.mark(s.own.Starts-1), s.revision)
	default:
		err = s.remove(ctx)
	}
	if err != nil {
		s.log.Warn("could not take back the start of the campaign", "reason", err)
		s.survived.add(s.id, own...)
	}
	s.own, s.attempted = startMark{}, startMark{}
}

// remove removes the mark.
func (s *starts) remove(ctx context.Context) error {
	defer s.clearSuspicion()
	if err := board.IgnoreConflict(s.cfg.Board.DeleteAt(ctx, manifest.KeyStartPrefix+s.id, s.revision)); err != nil {
		return fmt.Errorf("remove the starts of campaign %s: %w", s.id, err)
	}
	s.own = startMark{}
	return nil
}

// clearSuspicion lets the next campaign start that may have ended a coordinator.
func (s *starts) clearSuspicion() {
	if s.suspect {
		s.suspect = false
		<-s.suspects
	}
}
