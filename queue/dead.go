package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Dead says why an item was given up.
type Dead struct {
	// ID is the item's id.
	ID string `json:"id"`
	// Reason is one line for people.
	Reason string `json:"reason"`
	// Attempts is how often it was tried.
	Attempts int `json:"attempts"`
	// Worker names the last worker.
	Worker string `json:"worker,omitempty"`
	// TraceID is the trace of the last attempt, 32 hex digits.
	TraceID string `json:"trace_id,omitempty"`
}

// DeadLetter is an item that was given up, as it is kept.
type DeadLetter struct {
	Dead
	// Class and Payload are the item as it was published; Class is a token, as Lease.Class.
	Class   string `json:"class"`
	Payload []byte `json:"payload"`
	// Buried is when it was given up, by the worker's clock.
	Buried time.Time `json:"buried"`
}

// Bury gives the item up: a dead letter with the item and the reason is stored, and only then
// the item leaves the queue. Burying an item that a crash left half buried completes it.
func (l *Lease) Bury(ctx context.Context, d Dead) error {
	d.Reason = strings.Join(strings.Fields(d.Reason), " ")
	return l.settle(ctx, "bury", d.Reason, func(ctx context.Context) error {
		data, err := json.Marshal(DeadLetter{Dead: d, Class: l.Class(), Payload: l.Payload(), Buried: l.q.cfg.Now().UTC()})
		if err != nil {
			return err
		}
		msg, err := l.q.message(ctx, deadSubject+"."+l.q.campaign, l.epoch, d.ID, data)
		if err != nil {
			return err
		}
		if err := l.q.storeOnce(ctx, msg); err != nil {
			return fmt.Errorf("store dead letter: %w", err)
		}
		l.q.cfg.Logger.Warn("item buried", "campaign", l.q.cfg.Campaign, "id", d.ID, "reason", d.Reason, "attempts", d.Attempts)
		return l.send(ctx, func() error { return l.msg.TermWithReason(d.Reason) })
	})
}

// DeadLetters returns the campaign's dead letters, the oldest first.
func (q *Queue) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	subject := jetstream.WithGetMsgSubject(deadSubject + "." + q.campaign)
	var letters []DeadLetter
	for next := uint64(1); ; {
		msg, err := q.dead.GetMsg(ctx, next, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return letters, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read dead letters of campaign %s: %w", q.cfg.Campaign, serverError(err))
		}
		var letter DeadLetter
		if err := json.Unmarshal(msg.Data, &letter); err != nil {
			return nil, fmt.Errorf("read dead letter %d of campaign %s: %w", msg.Sequence, q.cfg.Campaign, err)
		}
		letters = append(letters, letter)
		next = msg.Sequence + 1
	}
}
