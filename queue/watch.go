package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/retry"
)

const (
	// pollInterval is the mean time between two reads of a watch without a notice. A notice may be lost.
	pollInterval = 5 * time.Second
	// noticePause is the least time between two reads of a watch: the changes of that time are read together.
	noticePause = 200 * time.Millisecond
	// listReads is the number of records that a list reads at a time.
	listReads = 32
)

// Change is the current or the new state of a record.
type Change struct {
	Key      string
	Data     []byte
	Revision uint64
	// Deleted means that the record was deleted; Data is empty.
	Deleted bool
	// Ready marks the end of the records that existed when the watch began. It comes once, in a Change of its own.
	Ready bool
}

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
// and then every change as it happens, the first after a quiet time at once and further ones within a fifth of a second.
// Of several changes in quick succession only the last may be yielded, and a deletion may be yielded for a record that
// never was. Watch survives lost connections and servers. It ends without an error when ctx ends; any other error is
// yielded as the last pair. ErrNotReady: the board was deleted.
func (b *Board) Watch(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w, err := b.watcher(prefix)
		if err == nil {
			w.endless = true
			err = w.run(ctx, func(c Change) bool { return yield(c, nil) })
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
	// endless reads retry for as long as the context lasts, others for the time of the link.
	endless bool
	// after is the sequence number of the last read message.
	after uint64
	// early has the revisions of records behind after that were read already.
	early map[string]uint64
}

// watcher returns a watcher of the records with a prefix.
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

// run yields the records, Ready, and changes until yield returns false.
func (w *watcher) run(ctx context.Context, yield func(Change) bool) error {
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
	for {
		if goOn, err := w.readChanges(ctx, yield); err != nil || !goOn {
			return err
		}
		if err := retry.Sleep(ctx, noticePause); err != nil {
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
	err := w.request(ctx, func(ctx context.Context) (err error) {
		if info, err = w.stream.Info(ctx); err == nil {
			w.after = info.State.LastSeq
			info, err = w.stream.Info(ctx, jetstream.WithSubjectFilter(boardSubject+w.filter))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var records []Change
	w.early = map[string]uint64{}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(listReads)
	for subject := range info.State.Subjects {
		group.Go(func() error {
			c, err := w.get(inner, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
				return w.stream.GetLastMsgForSubject(ctx, subject)
			})
			if err != nil || c == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			records = append(records, *c)
			if c.Revision > w.after {
				w.early[c.Key] = c.Revision
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
	return records, nil
}

// readChanges yields the records that were written after the last read.
func (w *watcher) readChanges(ctx context.Context, yield func(Change) bool) (goOn bool, err error) {
	for {
		c, err := w.get(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return w.stream.GetMsg(ctx, w.after+1, jetstream.WithGetMsgSubject(boardSubject+w.filter))
		})
		if err != nil || c == nil {
			return true, err
		}
		w.after = c.Revision
		if w.early[c.Key] == c.Revision {
			delete(w.early, c.Key)
			continue
		}
		if !yield(*c) {
			return false, nil
		}
	}
}

// get returns the record of the message that read returns; nil means that there is none.
func (w *watcher) get(ctx context.Context, read func(context.Context) (*jetstream.RawStreamMsg, error)) (*Change, error) {
	var msg *jetstream.RawStreamMsg
	err := w.request(ctx, func(ctx context.Context) (err error) {
		msg, err = read(ctx)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		return err
	})
	if err != nil || msg == nil {
		return nil, err
	}
	c := &Change{Key: strings.TrimPrefix(msg.Subject, boardSubject+"."), Revision: msg.Sequence}
	if header := carrier(msg.Header); header.Get("KV-Operation") != "" || header.Get(jetstream.MarkerReasonHeader) != "" {
		c.Deleted = true
	} else {
		c.Data = msg.Data
	}
	return c, nil
}

// request calls act until it succeeds or fails permanently.
func (w *watcher) request(ctx context.Context, act func(context.Context) error) error {
	if !w.endless {
		return w.withRetry(ctx, boardStream, act)
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, w.attempt(ctx, boardStream, act) },
		backoff.WithBackOff(retry.NewBackOff(firstPause, longestPause)), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			w.logger.Warn("reading was interrupted, will resume", "stream", boardStream, "after", w.after, "reason", err)
		}))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
