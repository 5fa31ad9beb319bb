package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
)

const (
	// statusInterval is how often a status is published of which only the rate and the remaining time change.
	statusInterval = 5 * time.Second
	// restingInterval is how often a status is published that does not change: each write costs all who follow the board a request.
	restingInterval = time.Minute
)

// published is the status of a campaign on the board.
type published struct {
	*campaign
	last record.Status
}

// publish writes a status to the board if it has changed or the last one is old.
func (r *published) publish(ctx context.Context, s record.Status) error {
	interval, known := statusInterval, r.last
	if known.At = s.At; reflect.DeepEqual(s, known) {
		interval = restingInterval
	}
	known.Rate, known.Left, known.LeftLow, known.LeftHigh = s.Rate, s.Left, s.LeftLow, s.LeftHigh
	if age := s.At.Sub(r.last.At); reflect.DeepEqual(s, known) && age >= 0 && age < interval { // negative after a leader whose clock was ahead
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.cfg.Board.Put(ctx, record.KeyStatusPrefix+r.id, data); err != nil {
		return fmt.Errorf("publish status: %w", err)
	}
	r.last = s
	return nil
}

// read reads the status that this or another leader has published. Without one that can be read, the next is the first.
func (r *published) read(ctx context.Context) error {
	r.last = record.Status{}
	data, _, err := r.cfg.Board.Get(ctx, record.KeyStatusPrefix+r.id)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		if r.rec.Last != nil {
			r.last = *r.rec.Last
		}
	case err != nil:
		return fmt.Errorf("read the last status: %w", err)
	case json.Unmarshal(data, &r.last) != nil:
		r.last = record.Status{}
	}
	return nil
}

// interrupt names the error that has interrupted the campaign in its last status: a damaged record, for example,
// needs a person. A problem goes before it. It is best effort, and leaves the status of an ended campaign alone.
func (r *published) interrupt(ctx context.Context, cause error, problem string) {
	s := r.last
	if s.ID == "" {
		s = record.Status{ID: r.id, Phase: r.rec.Phase}
	}
	if s.Phase.Ended() {
		return
	}
	reason := "interrupted, will retry: " + strings.Join(strings.Fields(cause.Error()), " ")
	s.Problem, s.At = brief(cmp.Or(problem, reason)), r.cfg.Now().UTC()
	data, err := json.Marshal(s)
	if err == nil {
		err = r.cfg.Board.Put(ctx, record.KeyStatusPrefix+r.id, data)
	}
	if err != nil {
		r.log.Debug("could not publish the interruption", "reason", err)
	}
}
