package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MaxRecordBytes is the size limit of a record.
const MaxRecordBytes = 768 << 10

// Board holds the state that coordinators, workers and people share: one small record per key, with compare-and-swap
// and watches. A written record is visible to every reader at once. All methods may be called concurrently; each
// retries for a while when the server does not answer, and then returns ErrUnavailable.
//
// A key consists of letters, digits, "-", "_", "/", "=" and ".", which separates its parts. Token turns a name into a
// part.
type Board struct {
	*link
	kv     jetstream.KeyValue
	stream jetstream.Stream // of kv
}

// BoardOption configures a Board.
type BoardOption func(*Board)

// BoardLogger sets the logger for interruptions. Default: no log.
func BoardLogger(logger *slog.Logger) BoardOption { return func(b *Board) { b.logger = logger } }

// OpenBoard opens the board that Setup has created. ErrNotReady: there is no board.
func OpenBoard(ctx context.Context, nc *nats.Conn, options ...BoardOption) (*Board, error) {
	l, err := newLink(nc, nil, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	b := &Board{link: l}
	for _, option := range options {
		option(b)
	}
	err = l.withRetry(ctx, boardStream, func(ctx context.Context) (err error) {
		if b.kv, err = l.js.KeyValue(ctx, boardBucket); err == nil {
			b.stream, err = l.js.Stream(ctx, boardStream)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	return b, nil
}

// Get returns a record and its revision, or ErrNoRecord.
func (b *Board) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	err = b.call(ctx, key, func(ctx context.Context) error {
		entry, err := b.kv.Get(ctx, key)
		if err == nil {
			data, revision = entry.Value(), entry.Revision()
		}
		return err
	})
	return data, revision, wrap(err, "read record %s", key)
}

// Create writes a new record, or returns ErrRecordExists.
func (b *Board) Create(ctx context.Context, key string, data []byte) (revision uint64, err error) {
	revision, err = b.compareAndSwap(ctx, key, data, func(ctx context.Context) (uint64, error) { return b.kv.Create(ctx, key, data) })
	if errors.Is(err, ErrConflict) {
		err = ErrRecordExists
	}
	return revision, wrap(err, "create record %s", key)
}

// Update replaces a record that is still at revision, or returns ErrConflict.
func (b *Board) Update(ctx context.Context, key string, data []byte, revision uint64) (next uint64, err error) {
	next, err = b.compareAndSwap(ctx, key, data, func(ctx context.Context) (uint64, error) { return b.kv.Update(ctx, key, data, revision) })
	return next, wrap(err, "update record %s", key)
}

// compareAndSwap runs a conditional write. After a lost answer, a conflict of the next attempt may be with the previous
// attempt: then the record already has the new content.
func (b *Board) compareAndSwap(ctx context.Context, key string, data []byte, write func(context.Context) (uint64, error)) (revision uint64, err error) {
	if len(data) > MaxRecordBytes {
		return 0, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), MaxRecordBytes)
	}
	answerLost := false
	err = b.call(ctx, key, func(ctx context.Context) (err error) {
		revision, err = write(ctx)
		if !conflict(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			answerLost = answerLost || transient(err)
			return err
		}
		if answerLost {
			if entry, err := b.kv.Get(ctx, key); err == nil && bytes.Equal(entry.Value(), data) {
				revision = entry.Revision()
				return nil
			}
		}
		return fmt.Errorf("%w: %w", ErrConflict, err)
	})
	return revision, err
}

// Put writes a record unconditionally.
func (b *Board) Put(ctx context.Context, key string, data []byte) error {
	if len(data) > MaxRecordBytes {
		return fmt.Errorf("write record %s: %w: %d bytes, the limit is %d", key, ErrTooLarge, len(data), MaxRecordBytes)
	}
	err := b.call(ctx, key, func(ctx context.Context) error {
		_, err := b.kv.Put(ctx, key, data)
		return err
	})
	return wrap(err, "write record %s", key)
}

// Delete removes a record. It is idempotent.
func (b *Board) Delete(ctx context.Context, key string) error { return b.remove(ctx, key) }

// DeleteAt removes a record that is still at revision, or returns ErrConflict. A missing record is no error.
func (b *Board) DeleteAt(ctx context.Context, key string, revision uint64) error {
	err := b.remove(ctx, key, jetstream.WithExpectLastSequencePerSubject(revision))
	if !errors.Is(err, ErrConflict) {
		return err
	}
	// The answer to an earlier attempt may have been lost.
	if _, _, getErr := b.Get(ctx, key); errors.Is(getErr, ErrNoRecord) {
		return nil
	}
	return err
}

// remove deletes a record under conditions. The marker replaces the record, as each key has one message: the board does not
// allow roll-ups, with which the marker of one record could remove all others.
func (b *Board) remove(ctx context.Context, key string, conditions ...jetstream.PublishOpt) error {
	err := b.call(ctx, key, func(ctx context.Context) error {
		marker := &nats.Msg{Subject: boardSubject + "." + key, Header: nats.Header{"KV-Operation": {"PURGE"}}}
		_, err := b.js.PublishMsg(ctx, marker, append(conditions, jetstream.WithMsgTTL(tombstoneAge))...)
		if conflict(err) {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
		return err
	})
	return wrap(err, "delete record %s", key)
}

var validKey = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

func (b *Board) call(ctx context.Context, key string, act func(context.Context) error) error {
	if !validKey.MatchString(key) {
		return fmt.Errorf("%w: key %q", ErrBadName, key)
	}
	err := b.withRetry(ctx, boardStream, act)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted) {
		return ErrNoRecord
	}
	return err
}

// withTimeout returns a copy of the board that retries for d.
func (b *Board) withTimeout(d time.Duration) *Board {
	l := *b.link
	l.timeout = d
	return &Board{link: &l, kv: b.kv, stream: b.stream}
}
