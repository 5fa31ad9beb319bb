package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	// Process identifies the process of the last start, which has survived the start if it reads the mark again.
	Process string `json:"process,omitempty"`
	// Parked: the campaign is rejected because of its starts. A person may resume it.
	Parked bool `json:"parked,omitempty"`
	// Coordinator and At describe the last start, for people.
	Coordinator string    `json:"coordinator"`
	At          time.Time `json:"at"`
}

// starts counts the starts of a campaign that end a coordinator, for a runner.
type starts struct {
	id       string
	process  string
	cfg      *Config
	log      *slog.Logger
	suspects chan struct{} // has an element while a campaign starts that may have ended a coordinator

	own     int  // starts with that of this runner; 0 without one
	suspect bool // holds suspects
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
	if mark.Process == s.process && mark.Starts > 0 && !mark.Parked {
		mark.Starts-- // the board did not answer when this start was taken back
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
	s.own = mark.Starts + 1 // also if the write fails: the board may have it
	return s.write(ctx, s.mark(s.own), revision)
}

// mark is a mark of this coordinator.
func (s *starts) mark(n int) startMark {
	return startMark{Starts: n, Process: s.process, Coordinator: s.cfg.Name, At: s.cfg.Now().UTC()}
}

// park rejects the campaign with the reason.
func (s *starts) park(ctx context.Context, mark startMark, revision uint64) error {
	if !mark.Parked {
		mark.Parked = true
		if err := s.write(ctx, mark, revision); err != nil {
			return err
		}
	}
	return rejection{fmt.Errorf("%d coordinators have died while they started this campaign, the last was %s at %s: its prior or its dataset may need "+
		"more memory than there is; mend it and submit it again, or resume it to try again",
		mark.Starts, mark.Coordinator, mark.At.UTC().Format(time.DateTime))}
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
	if revision == 0 {
		_, err = s.cfg.Board.Create(ctx, manifest.KeyStartPrefix+s.id, data)
	} else {
		_, err = s.cfg.Board.Update(ctx, manifest.KeyStartPrefix+s.id, data, revision)
	}
	if err != nil {
		return fmt.Errorf("count a start of campaign %s: %w", s.id, err)
	}
	return nil
}

// progress takes the earlier starts back after a stored window or when the campaign waits for others, and the mark when the dataset is read.
func (s *starts) progress(ctx context.Context, complete bool) error {
	switch {
	case s.own == 0 || s.own == 1 && !complete:
		return nil
	case complete:
		return s.replace(ctx, startMark{})
	}
	return s.replace(ctx, s.mark(1))
}

// end takes the start back, because this coordinator has survived it. If the board does not answer, the next start in this
// process does.
func (s *starts) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unmarkTimeout)
	defer cancel()
	if s.own > 0 {
		before := s.mark(s.own - 1)
		before.Process = ""
		if err := s.replace(ctx, before); err != nil {
			s.log.Warn("could not take back the start of the campaign", "reason", err)
		}
	}
	s.clearSuspicion()
	s.own = 0
}

// replace replaces the mark of this process, if the board has it. A mark without starts is removed.
func (s *starts) replace(ctx context.Context, next startMark) error {
	mark, revision, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.clearSuspicion()
	switch {
	case mark.Process != s.process || mark.Parked: // not ours any more
	case next.Starts > 0:
		err = s.write(ctx, next, revision)
	default:
		if err = board.IgnoreConflict(s.cfg.Board.DeleteAt(ctx, manifest.KeyStartPrefix+s.id, revision)); err != nil {
			err = fmt.Errorf("remove the starts of campaign %s: %w", s.id, err)
		}
	}
	if err == nil {
		s.own = next.Starts
	}
	return err
}

// clearSuspicion lets the next campaign start that may have ended a coordinator.
func (s *starts) clearSuspicion() {
	if s.suspect {
		s.suspect = false
		<-s.suspects
	}
}
