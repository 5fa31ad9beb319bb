package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// maxLogBytes limits the log lines of a dead letter; the last lines are stored.
const maxLogBytes = 32 << 10

// Dead describes why an item was buried.
type Dead struct {
	// ID is the item's id.
	ID string `json:"id"`
	// Reason is one line for people.
	Reason string `json:"reason"`
	// Attempts is the number of attempts.
	Attempts int `json:"attempts"`
	// Worker names the last worker.
	Worker string `json:"worker,omitempty"`
	// TraceID is the trace of the last attempt, 32 hex digits.
	TraceID string `json:"trace_id,omitempty"`
	// Log holds the last lines of the worker's log about the item.
	Log []string `json:"log,omitempty"`
}

// DeadLetter is a buried item.
type DeadLetter struct {
	Dead
	// Seq is the letter's sequence number, and Round the round in which the item was published.
	Seq   uint64 `json:"-"`
	Round int    `json:"round,omitempty"`
	// Class and Payload are the published item; Class is a token, as Lease.Class returns.
	Class   string `json:"class"`
	Payload []byte `json:"payload"`
	// Buried is the time of burial by the clock of the burying process.
	Buried time.Time `json:"buried"`
}

// Bury ends all attempts at the item: it stores a dead letter with the item and the reason, and then removes the item from the
// queue. It completes a burial that a crash interrupted; the item then has two letters.
func (l *Lease) Bury(ctx context.Context, d Dead) error {
	d.Reason = strings.Join(strings.Fields(d.Reason), " ")
	return l.settle(ctx, "bury", d.Reason, func(ctx context.Context) error {
		if l.settled.Load() {
			return ErrSettled
		}
		letter := DeadLetter{Dead: d, Round: l.Round(), Class: l.Class(), Payload: l.Payload(), Buried: l.q.cfg.Now().UTC()}
		if err := l.q.bury(ctx, l.identity, letter); err != nil {
			return fmt.Errorf("store dead letter: %w", err)
		}
		l.q.cfg.Logger.Warn("item buried", "campaign", l.q.cfg.Campaign, "id", d.ID, "reason", d.Reason, "attempts", d.Attempts)
		return l.finish(ctx, ackTerm+" "+d.Reason)
	})
}

func (l *link) bury(ctx context.Context, i identity, letter DeadLetter) error {
	letter.Log = tail(letter.Log, maxLogBytes)
	data, err := json.Marshal(letter)
	if err != nil {
		return err
	}
	msg, err := i.message(ctx, deadSubject+"."+i.campaign, data)
	if err != nil {
		return err
	}
	return l.store(ctx, deadStream, msg)
}

// tail returns the last lines that together have at most limit bytes.
func tail(lines []string, limit int) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		if limit -= len(lines[i]); limit < 0 {
			return lines[i+1:]
		}
	}
	return lines
}

// DeadLetters yields the campaign's dead letters from the oldest to the newest. A letter that cannot be read has only its
// Seq and an error that wraps ErrDamaged; the other letters follow. Any other error is yielded as the last pair.
func (q *Queue) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		var stream jetstream.Stream
		for next := uint64(1); ; {
			letter, err := q.deadLetter(ctx, &stream, next)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				err = fmt.Errorf("read dead letters of campaign %s: %w", q.cfg.Campaign, err)
			}
			if !yield(letter, err) || (err != nil && !errors.Is(err, ErrDamaged)) {
				return
			}
			next = letter.Seq + 1
		}
	}
}

// deadLetter reads the campaign's first letter with sequence number seq or higher. It looks up the stream when *stream
// is nil.
func (q *Queue) deadLetter(ctx context.Context, stream *jetstream.Stream, seq uint64) (letter DeadLetter, err error) {
	var msg *jetstream.RawStreamMsg
	err = q.withRetry(ctx, "", func(ctx context.Context) (err error) {
		if *stream == nil {
			if *stream, err = q.js.Stream(ctx, deadStream); err != nil {
				return err
			}
		}
		msg, err = (*stream).GetMsg(ctx, seq, jetstream.WithGetMsgSubject(deadSubject+"."+q.campaign))
		return err
	})
	if err != nil {
		return letter, err
	}
	if err := json.Unmarshal(msg.Data, &letter); err != nil {
		return DeadLetter{Seq: msg.Sequence}, fmt.Errorf("%w: number %d: %w", ErrDamaged, msg.Sequence, err)
	}
	letter.Seq = msg.Sequence
	return letter, nil
}

// RemoveDead removes the dead letter with a sequence number from DeadLetters. It is idempotent.
func (q *Queue) RemoveDead(ctx context.Context, seq uint64) error {
	var stream jetstream.Stream
	letter, err := q.deadLetter(ctx, &stream, seq)
	if errors.Is(err, ErrDamaged) {
		err = nil
	}
	if err == nil && letter.Seq == seq {
		err = q.withRetry(ctx, "", func(ctx context.Context) error { return stream.DeleteMsg(ctx, seq) })
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("remove dead letter %d of campaign %s: %w", seq, q.cfg.Campaign, err)
	}
	return nil
}
