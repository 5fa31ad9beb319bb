package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/retry"
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

// OpenBoard opens the board that Setup has created. ErrNotReady: there is no board. The logger, which may be nil, receives interruptions.
func OpenBoard(ctx context.Context, nc *nats.Conn, logger *slog.Logger) (*Board, error) {
	l, err := newLink(nc, logger, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("open board: %w", err)
	}
	b := &Board{link: l}
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

// CreateFor is Create of a record that ends after a time, of at least a second.
func (b *Board) CreateFor(ctx context.Context, key string, data []byte, age time.Duration) error {
	_, err := b.compareAndSwap(ctx, key, data, func(ctx context.Context) (uint64, error) {
		return b.kv.Create(ctx, key, data, jetstream.KeyTTL(max(age, time.Second)))
	})
	return wrap(err, "create record %s", key)
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

// Discard is Delete of a record that nobody watches: the mark of its deletion stays for seconds only.
func (b *Board) Discard(ctx context.Context, key string) error {
	return b.remove(ctx, key, jetstream.WithMsgTTL(discardedAge))
}

// Names lists the keys with a prefix, see Keys, in byte order by one request, without reading the records. It includes records that were
// deleted of late.
func (b *Board) Names(ctx context.Context, prefix string) ([]string, error) {
	w, err := b.watcher(prefix)
	var info *jetstream.StreamInfo
	if err == nil {
		err = b.withRetry(ctx, boardStream, func(ctx context.Context) (err error) {
			info, err = b.stream.Info(ctx, jetstream.WithSubjectFilter(boardSubject+w.filter))
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the names of records %s: %w", prefix, err)
	}
	var keys []string
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, boardSubject+"."))
	}
	slices.Sort(keys)
	return keys, nil
}

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
		_, err := b.js.PublishMsg(ctx, marker, append([]jetstream.PublishOpt{jetstream.WithMsgTTL(tombstoneAge)}, conditions...)...)
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

const (
	// pollInterval is the mean time between two reads of a watch without a notice. A notice may be lost.
	pollInterval = 5 * time.Second
	// noticePause is the least time between two reads of a watch: the changes of that time are read together. While each read finds
	// changes, the pause grows to longestNoticePause: thousands of watches of records that never rest cost the server a few requests
	// a second each otherwise.
	noticePause        = 200 * time.Millisecond
	longestNoticePause = 2 * time.Second
	// listReads is the number of records that a list reads at a time.
	listReads = 32
)

// Change is the current or the new state of a record.
type Change struct {
	Key      string
	Data     []byte
	Revision uint64
	// Since is the time of the write on the clock of this process: its age is that by the clock of the queue server. Two machines' clocks
	// are never compared.
	Since time.Time
	// Deleted means that the record was deleted; Data is empty.
	Deleted bool
	// Ready marks the end of the records that existed when the watch began. It comes once, in a Change of its own.
	Ready bool
	// Back: the record was read because the board had lost writes, as after the restoration of a backup, or was out of reach for long. It may
	// be older than one that was yielded before.
	Back bool
}

// Age returns the time since the write by the clock of the queue server.
func (c Change) Age() time.Duration { return max(0, time.Since(c.Since)) }

// Keys lists the keys with a prefix in byte order. The prefix is "" for all keys, ends with "." for the keys below it,
// or is a complete key.
func (b *Board) Keys(ctx context.Context, prefix string) ([]string, error) {
	w, err := b.watcher(prefix)
	var records []Change
	if err == nil {
		records, err = w.list(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list records %s: %w", prefix, err)
	}
	var keys []string
	for _, c := range records {
		if !c.Deleted {
			keys = append(keys, c.Key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Watch yields the records that Keys would list, in the order in which they were written, then one Change with Ready set,
// and then every change as it happens, the first after a quiet time at once and further ones within a fifth of a second, or
// within two seconds if changes go on for long.
// Of several changes in quick succession only the last may be yielded, and a deletion may be yielded for a record that
// never was. Watch survives lost connections and servers. When a server has lost its last writes, or was restored from a
// copy, Watch yields the records that differ, with Deleted for those that are gone. It ends without an error when ctx ends; any
// other error is yielded as the last pair. ErrNotReady: the board was deleted.
func (b *Board) Watch(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return b.watch(ctx, prefix, longestNoticePause)
}

// WatchClosely is Watch that yields every change within a fifth of a second, also if changes go on for long: for the one process that answers
// requests of others.
func (b *Board) WatchClosely(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return b.watch(ctx, prefix, noticePause)
}

// watch is Watch with pauses of up to longest between two reads.
func (b *Board) watch(ctx context.Context, prefix string, longest time.Duration) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w, err := b.withTimeout(0).watcher(prefix)
		if err == nil {
			err = w.run(ctx, longest, func(c Change) bool { return yield(c, nil) })
		}
		if err != nil && ctx.Err() == nil {
			yield(Change{}, fmt.Errorf("watch records %s: %w", prefix, err))
		}
	}
}

// watcher reads the records of the board with a prefix, and their changes. It sends requests only: the permission to create a
// consumer lets its owner send records to any subscription in the account of the streams, because the server does not check a
// consumer's deliver subject.
type watcher struct {
	*link
	stream jetstream.Stream
	filter string // of subjects
	// after is the sequence number up to which all messages were read.
	after uint64
	// last is the newest message that was read up to after, and read the time of the last read by the clock of this process.
	last version
	read time.Time
	// known has the read records, also deleted ones.
	known map[string]version
	// connection is the number of reconnections at the last read. The messages of another connection may be others.
	connection uint64
}

// version identifies a message. A stream that has lost its last messages uses their sequence numbers again.
type version struct {
	revision uint64
	written  int64 // in nanoseconds
	deleted  bool
}

// isStale reports whether the server may have removed marks of records that were deleted since the last read. The time of the read is by
// the clock of this process, which that of the server is not, and by that on the wall: the other one stops while the machine is suspended.
func (w *watcher) isStale() bool { return time.Now().Round(0).Sub(w.read.Round(0)) > tombstoneAge/2 }

func (b *Board) watcher(prefix string) (*watcher, error) {
	if key := strings.TrimSuffix(prefix, "."); key != "" && !validKey.MatchString(key) {
		return nil, fmt.Errorf("%w: prefix %q", ErrBadName, prefix)
	}
	filter := "." + prefix
	if prefix == "" || strings.HasSuffix(prefix, ".") {
		filter += ">"
	}
	return &watcher{link: b.link, stream: b.stream, filter: filter}, nil
}

// run yields the records, Ready, and changes until yield returns false. The pause between two reads grows to longest.
func (w *watcher) run(ctx context.Context, longest time.Duration, yield func(Change) bool) error {
	notice := make(chan struct{}, 1)
	sub, err := w.nc.Subscribe(noticeSubject+w.filter, func(*nats.Msg) {
		select {
		case notice <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return serverError(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // it fails only on a closed connection
	status := w.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer w.nc.RemoveStatusListener(status)
	records, err := w.list(ctx)
	if err != nil {
		return err
	}
	for _, c := range append(records, Change{Ready: true}) {
		if !yield(c) {
			return nil
		}
	}
	for pause := noticePause; ; {
		before := w.after
		if goOn, err := w.readChanges(ctx, yield); err != nil || !goOn {
			return err
		}
		if pause = min(pause*5/4, longest); w.after == before {
			pause = noticePause
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
		poll := time.NewTimer(time.Duration((0.75 + rand.Float64()/2) * float64(pollInterval)))
		select {
		case <-ctx.Done():
		case <-notice:
		case <-poll.C:
		case _, open := <-status: // notices were lost with the connection
			if !open {
				status = nil
			}
		}
		poll.Stop()
	}
}

// list reads all records, in the order in which they were written, and sets the position of readChanges.
func (w *watcher) list(ctx context.Context) ([]Change, error) {
	var info *jetstream.StreamInfo
	var after uint64
	var read time.Time
	connection := w.nc.Stats().Reconnects
	err := w.withRetry(ctx, boardStream, func(ctx context.Context) (err error) {
		if info, err = w.stream.Info(ctx); err == nil {
			after = info.State.LastSeq
			info, err = w.stream.Info(ctx, jetstream.WithSubjectFilter(boardSubject+w.filter))
			read = time.Now()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var records []Change
	known, last := map[string]version{}, version{}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(listReads)
	for subject := range info.State.Subjects {
		group.Go(func() error {
			c, v, err := w.get(inner, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
				return w.stream.GetLastMsgForSubject(ctx, subject)
			})
			if err != nil || c == nil {
				return err
			}
			if age := info.TimeStamp.Sub(time.Unix(0, v.written)); age > 0 { // otherwise it was written since
				c.Since = read.Add(-age)
			}
			mu.Lock()
			defer mu.Unlock()
			records = append(records, *c)
			known[c.Key] = v
			if v.revision <= after && v.revision > last.revision {
				last = v
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	slices.SortFunc(records, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	w.after, w.last, w.read, w.known, w.connection = after, last, read, known, connection
	return records, nil
}

// readChanges yields the records that were written after the last read.
func (w *watcher) readChanges(ctx context.Context, yield func(Change) bool) (goOn bool, err error) {
	if w.isStale() {
		return w.listAgain(ctx, yield)
	}
	connection := w.nc.Stats().Reconnects
	newest, err := w.newest(ctx)
	if err != nil || w.nc.Stats().Reconnects != connection {
		return true, err
	}
	if newest == w.last {
		w.read, w.connection = time.Now(), connection
		return true, nil
	}
	if back, err := w.wentBack(ctx, newest, connection); err != nil {
		return true, err
	} else if back {
		return w.listAgain(ctx, yield)
	}
	for w.after < newest.revision {
		c, v, err := w.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return w.stream.GetMsg(ctx, w.after+1, jetstream.WithGetMsgSubject(boardSubject+w.filter))
		})
		if err != nil || c == nil || w.nc.Stats().Reconnects != connection {
			return true, err
		}
		w.after, w.last, w.read = c.Revision, v, c.Since
		if w.known[c.Key] == v {
			continue
		}
		if w.known[c.Key] = v; c.Deleted {
			delete(w.known, c.Key)
		}
		if !yield(*c) {
			return false, nil
		}
	}
	return true, nil
}

func (w *watcher) newest(ctx context.Context) (version, error) {
	_, v, err := w.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return w.stream.GetLastMsgForSubject(ctx, boardSubject+w.filter)
	})
	return v, err
}

// wentBack reports whether messages that were read may be gone, given the newest message and the number of reconnections.
func (w *watcher) wentBack(ctx context.Context, newest version, connection uint64) (bool, error) {
	if newest.revision <= w.after || w.connection == connection {
		return newest.revision <= w.after, nil
	}
	if w.last.revision == 0 {
		return true, nil
	}
	// Others may have been written since in their place.
	_, v, err := w.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return w.stream.GetMsg(ctx, w.last.revision)
	})
	if err != nil {
		return false, err
	}
	w.connection = connection
	return v != w.last, nil
}

// listAgain reads all records again, and yields those that differ from the known ones.
func (w *watcher) listAgain(ctx context.Context, yield func(Change) bool) (goOn bool, err error) {
	before := w.known
	records, err := w.list(ctx)
	if err != nil {
		return true, err
	}
	for key := range before {
		if _, found := w.known[key]; !found && !yield(Change{Key: key, Deleted: true}) {
			return false, nil
		}
	}
	for _, c := range records {
		c.Back = true
		if before[c.Key] != w.known[c.Key] && !yield(c) {
			return false, nil
		}
	}
	return true, nil
}

// get returns the record of the message that read returns; nil means that there is none.
func (w *watcher) get(ctx context.Context, read func(context.Context) (*jetstream.RawStreamMsg, error)) (*Change, version, error) {
	var msg *jetstream.RawStreamMsg
	err := w.withRetry(ctx, boardStream, func(ctx context.Context) (err error) {
		msg, err = read(ctx)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			msg, err = nil, nil
		}
		return err
	})
	if err != nil || msg == nil {
		return nil, version{}, err
	}
	c := &Change{Key: strings.TrimPrefix(msg.Subject, boardSubject+"."), Revision: msg.Sequence, Since: time.Now()}
	if header := msg.Header; header.Get("KV-Operation") != "" || header.Get(jetstream.MarkerReasonHeader) != "" {
		c.Deleted = true
	} else {
		c.Data = msg.Data
	}
	return c, version{msg.Sequence, msg.Time.UnixNano(), c.Deleted}, nil
}
