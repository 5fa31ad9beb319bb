package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MaxRecordBytes is the largest record of a board.
const MaxRecordBytes = 768 << 10

// Board is where coordinators, workers and people find what they share: one small record per
// key, which changes by compare-and-swap and can be watched. What was written is read by
// everybody. All methods may be called concurrently; each goes on trying for a while when the
// server does not answer, and then returns ErrUnavailable.
//
// A key is made of letters, digits, "-", "_", "/", "=" and ".", which separates its parts;
// Token turns a name into a part.
type Board struct {
	*link
	kv jetstream.KeyValue
}

// BoardOption changes a Board.
type BoardOption func(*Board)

// BoardLogger sets the logger that is told of interruptions. Default: nothing is logged.
func BoardLogger(logger *slog.Logger) BoardOption { return func(b *Board) { b.logger = logger } }

// OpenBoard opens the board, which must have been made by Setup, else the error is ErrNotReady.
func OpenBoard(ctx context.Context, nc *nats.Conn, options ...BoardOption) (*Board, error) {
	l, err := newLink(nc, nil, defaultPatience)
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	b := &Board{link: l}
	for _, option := range options {
		option(b)
	}
	err = l.persist(ctx, boardStream, func(ctx context.Context) (err error) {
		b.kv, err = l.js.KeyValue(ctx, boardBucket)
		return err
	})
	if errors.Is(err, ErrNotReady) {
		return nil, fmt.Errorf("open board: %w: no coordinator has set up this cluster yet", ErrNotReady)
	}
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	return b, nil
}

// Get returns a record and its revision, or ErrNoRecord.
func (b *Board) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	err = b.do(ctx, key, func(ctx context.Context) error {
		entry, err := b.kv.Get(ctx, key)
		if err == nil {
			data, revision = entry.Value(), entry.Revision()
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read record %s: %w", key, err)
	}
	return data, revision, nil
}

// Create writes a record that is not there yet, or returns ErrRecordExists.
func (b *Board) Create(ctx context.Context, key string, data []byte) (revision uint64, err error) {
	revision, err = b.swap(ctx, key, data, func(ctx context.Context) (uint64, error) { return b.kv.Create(ctx, key, data) })
	if errors.Is(err, ErrConflict) {
		err = ErrRecordExists
	}
	if err != nil {
		return 0, fmt.Errorf("create record %s: %w", key, err)
	}
	return revision, nil
}

// Update writes a record that is still at revision, or returns ErrConflict.
func (b *Board) Update(ctx context.Context, key string, data []byte, revision uint64) (next uint64, err error) {
	next, err = b.swap(ctx, key, data, func(ctx context.Context) (uint64, error) { return b.kv.Update(ctx, key, data, revision) })
	if err != nil {
		return 0, fmt.Errorf("update record %s: %w", key, err)
	}
	return next, nil
}

// swap runs a conditional write. When the answer to an attempt was lost, a conflict in the
// next may be with that attempt: then the record is what was to be written.
func (b *Board) swap(ctx context.Context, key string, data []byte, write func(context.Context) (uint64, error)) (revision uint64, err error) {
	if len(data) > MaxRecordBytes {
		return 0, fmt.Errorf("%w: it has %d bytes, %d are allowed", ErrTooLarge, len(data), MaxRecordBytes)
	}
	unsure := false
	err = b.do(ctx, key, func(ctx context.Context) (err error) {
		revision, err = write(ctx)
		if !conflict(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			unsure = unsure || transient(err)
			return err
		}
		if unsure {
			if entry, err := b.kv.Get(ctx, key); err == nil && bytes.Equal(entry.Value(), data) {
				revision = entry.Revision()
				return nil
			}
		}
		return fmt.Errorf("%w: %w", ErrConflict, err)
	})
	return revision, err
}

// Put writes a record, whatever is there.
func (b *Board) Put(ctx context.Context, key string, data []byte) error {
	if len(data) > MaxRecordBytes {
		return fmt.Errorf("write record %s: %w: it has %d bytes, %d are allowed", key, ErrTooLarge, len(data), MaxRecordBytes)
	}
	err := b.do(ctx, key, func(ctx context.Context) error {
		_, err := b.kv.Put(ctx, key, data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write record %s: %w", key, err)
	}
	return nil
}

// Delete removes a record. It is no error when there is none.
func (b *Board) Delete(ctx context.Context, key string) error { return b.remove(ctx, key) }

// remove deletes a record, under conditions.
func (b *Board) remove(ctx context.Context, key string, conditions ...jetstream.KVDeleteOpt) error {
	err := b.do(ctx, key, func(ctx context.Context) error {
		err := b.kv.Purge(ctx, key, append(conditions, jetstream.PurgeTTL(markerAge))...)
		if conflict(err) {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete record %s: %w", key, err)
	}
	return nil
}

// Keys lists the keys that begin with prefix, in byte order. A prefix is "" for all, ends with
// "." for those below it, or is a whole key.
func (b *Board) Keys(ctx context.Context, prefix string) ([]string, error) {
	found := map[string]bool{}
	err := b.watch(ctx, prefix, true, func(c Change) bool {
		if c.Key != "" {
			found[c.Key] = !c.Deleted
		}
		return !c.Ready
	})
	if err != nil {
		return nil, fmt.Errorf("list records %s: %w", prefix, err)
	}
	var keys []string
	for key, there := range found {
		if there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Change is a record as it is, or as it has become.
type Change struct {
	// Key, Data and Revision are the record's.
	Key      string
	Data     []byte
	Revision uint64
	// Deleted means that the record is gone; Data is empty.
	Deleted bool
	// Ready marks the end of the records that were there when the watch began. It comes
	// once, alone.
	Ready bool
}

// Watch yields the records that Keys would list, then one Change with Ready set, and then
// every change as it comes. Of changes that follow each other quickly only the last may be
// seen, and a deletion may be told of a record that was never yielded. It goes on through lost
// connections and servers, and ends when ctx does, without an error. Any other end is an
// error, yielded as the last pair; ErrNotReady when the board is gone.
func (b *Board) Watch(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		err := b.watch(ctx, prefix, false, func(c Change) bool { return yield(c, nil) })
		if err != nil && ctx.Err() == nil {
			yield(Change{}, fmt.Errorf("watch records %s: %w", prefix, err))
		}
	}
}

func (b *Board) watch(ctx context.Context, prefix string, bare bool, yield func(Change) bool) error {
	filter := boardSubject + "." + prefix
	if prefix == "" || strings.HasSuffix(prefix, ".") {
		filter += ">"
	}
	if key := strings.TrimSuffix(prefix, "."); key != "" && !validKey.MatchString(key) {
		return fmt.Errorf("%w: prefix %q", ErrBadName, prefix)
	}
	f := &follower{link: b.link, stream: boardStream, filter: filter, latest: true, bare: bare}
	return f.run(ctx, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) bool {
		c := Change{Key: strings.TrimPrefix(msg.Subject(), boardSubject+"."), Revision: meta.Sequence.Stream}
		if header := carrier(msg.Headers()); header.Get("KV-Operation") != "" || header.Get(jetstream.MarkerReasonHeader) != "" {
			c.Deleted = true
		} else {
			c.Data = msg.Data()
		}
		return yield(c)
	}, func() bool { return yield(Change{Ready: true}) })
}

// validKey is what a key may look like.
var validKey = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

// do runs a call on a key.
func (b *Board) do(ctx context.Context, key string, act func(context.Context) error) error {
	if !validKey.MatchString(key) {
		return fmt.Errorf("%w: %q cannot be a key", ErrBadName, key)
	}
	err := b.persist(ctx, boardStream, act)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted) {
		return ErrNoRecord
	}
	return err
}

// shortened is a copy of the board that gives up after d.
func (b *Board) shortened(d time.Duration) *Board {
	l := *b.link
	l.patience = d
	return &Board{link: &l, kv: b.kv}
}
