package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// dedupWindow is the default time for which the server remembers the ids of published messages. It must exceed the time for
	// which a publish is retried. Each id costs server memory for that time.
	dedupWindow = 2 * time.Minute
	// maxConsumers is the limit of a stream's consumers, such as those of campaigns on the work stream. A stream without a limit has the server's default, which is 1,000 in NATS 2.15.
	maxConsumers = 1 << 20
	// defaultMaxResults is the default limit of the number of results.
	defaultMaxResults = 10_000_000
	// retention is the time for which results are stored.
	retention = 90 * 24 * time.Hour
	// tombstoneAge is the time for which the board remembers a deleted record.
	tombstoneAge = time.Hour
	// discardedAge is that time for a record that nobody watches.
	discardedAge = 2 * time.Second
)

// SetupConfig describes the streams of a cluster.
type SetupConfig struct {
	// Replicas is the number of servers that store each message: 1, 3 or 5. Default 1.
	Replicas int
	// MaxResults limits the number of results of all campaigns. At the limit nothing is
	// discarded: a publisher waits for a while and then returns ErrFull, and the item stays in the queue. Below 0: no
	// limit but the server's. Default: 10 million results, some 4 GiB.
	MaxResults int64
	// UnsyncedWork lets the server acknowledge work before it is on disk, even when the server syncs every message. A
	// crash of the server then loses the newest work, which a coordinator detects and publishes again. It requires one
	// replica and affects only a newly created work stream; results always follow the server's setting.
	UnsyncedWork bool
	// DedupWindow is the time for which the server remembers the ids of work and results. Each id costs it some 250
	// bytes for that time. Shorter than the retries of a publish, it lets a message in twice after a lost answer, which
	// costs time only. Default 2 min.
	DedupWindow time.Duration
	// Logger receives created and changed streams. Default: no log.
	Logger *slog.Logger
}

// WithDefaults returns c with every zero field set to its default.
func (c SetupConfig) WithDefaults() SetupConfig {
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.MaxResults = cmp.Or(c.MaxResults, defaultMaxResults)
	c.DedupWindow = cmp.Or(c.DedupWindow, dedupWindow)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// Validate reports the first field that is out of range, after defaults are applied.
func (c SetupConfig) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("%w: Replicas is %d, 1 to 5 are allowed", ErrConfig, c.Replicas)
	case c.UnsyncedWork && c.Replicas > 1:
		return fmt.Errorf("%w: UnsyncedWork needs Replicas 1, not %d", ErrConfig, c.Replicas)
	case c.DedupWindow < 100*time.Millisecond:
		return fmt.Errorf("%w: DedupWindow is %v, at least 100ms is needed", ErrConfig, c.DedupWindow)
	}
	return nil
}

func (c SetupConfig) streams() []jetstream.StreamConfig {
	streams := []jetstream.StreamConfig{{
		Name: workStream, Subjects: []string{workSubject + ".>"}, Retention: jetstream.WorkQueuePolicy,
		Duplicates: c.DedupWindow,
	}, {
		Name: resultStream, Subjects: []string{resultSubject + ".>"}, MaxAge: retention, Duplicates: c.DedupWindow,
		MaxMsgs: c.MaxResults,
	}, {
		// A key-value bucket as the NATS tools define it, but read at the leader only, so that
		// readers see every completed write, and without roll-ups: any writer of a record could remove all others with one.
		// The server announces each change to those who watch.
		Name: boardStream, Subjects: []string{boardSubject + ".>"}, MaxMsgsPerSubject: 1, Duplicates: dedupWindow,
		DenyDelete: true, AllowMsgTTL: true,
		RePublish: &jetstream.RePublish{Source: boardSubject + ".>", Destination: noticeSubject + ".>", HeadersOnly: true},
	}}
	if c.UnsyncedWork {
		streams[0].PersistMode = jetstream.AsyncPersistMode
	}
	for i := range streams {
		s := &streams[i]
		s.Storage, s.Replicas = jetstream.FileStorage, c.Replicas
		s.Discard = jetstream.DiscardNew // refuse new messages instead of dropping old ones
		s.MaxConsumers, s.MaxBytes, s.MaxMsgSize = maxConsumers, -1, -1
		if s.MaxMsgs <= 0 {
			s.MaxMsgs = -1
		}
		if s.MaxMsgsPerSubject == 0 {
			s.MaxMsgsPerSubject = -1
		}
	}
	return streams
}

// Setup creates the streams and the board of a cluster, and applies cfg to existing ones. It is idempotent. A
// coordinator calls it at its start, and again when Queue.Exists returns false.
func Setup(ctx context.Context, nc *nats.Conn, cfg SetupConfig) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("set up queue: %w", err)
	}
	cfg = cfg.WithDefaults()
	l, err := newLink(nc, cfg.Logger, defaultTimeout)
	if err != nil {
		return fmt.Errorf("set up queue: %w", err)
	}
	if err := l.setupStreams(ctx, cfg, true); err != nil {
		return fmt.Errorf("set up queue: %w", err)
	}
	return nil
}

// setupStream creates a stream; with update, it also changes an existing stream that differs.
func (l *link) setupStream(ctx context.Context, want jetstream.StreamConfig, update bool) error {
	err := l.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := l.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			// Sequence numbers of a deleted stream are not reused: an acknowledgement of one of
			// its messages would acknowledge a new message.
			want.FirstSeq = uint64(time.Now().UnixMicro())
			if _, err = l.js.CreateStream(ctx, want); err == nil {
				l.logger.Info("created stream", "stream", want.Name, "replicas", want.Replicas)
				return nil
			}
			if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				return l.explainOverlap(ctx, want, err)
			}
			stream, err = l.js.Stream(ctx, want.Name) // another process created it first
		}
		if err != nil || !update {
			return err
		}
		old := stream.CachedInfo().Config
		if old.Retention != want.Retention {
			return fmt.Errorf("%w: a stream of this name exists that ddiff did not create", ErrConfig)
		}
		if old.PersistMode == jetstream.AsyncPersistMode && want.Replicas > 1 {
			return fmt.Errorf("%w: it was made for one replica, which NATS cannot change; stop all coordinators, delete it with nats stream rm %s, "+
				"and start them with more replicas: its items are published again", ErrConfig, want.Name)
		}
		next := changed(old, want)
		if reflect.DeepEqual(old, next) {
			return nil
		}
		_, err = l.js.UpdateStream(ctx, next)
		if err == nil {
			l.logger.Info("changed stream", "stream", want.Name, "replicas", want.Replicas)
		}
		return l.explainOverlap(ctx, want, err)
	})
	return wrap(err, "stream %s", want.Name)
}

// explainOverlap names the stream that has a subject of the wanted stream, if that is the reason of err.
func (l *link) explainOverlap(ctx context.Context, want jetstream.StreamConfig, err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) || api.ErrorCode != codeSubjectsOverlap {
		return err
	}
	for _, subject := range want.Subjects {
		for name := range l.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject)).Name() {
			if name != want.Name {
				return fmt.Errorf("%w: stream %s has the subject %s too; change its subjects, or give ddiff a NATS account of its own", ErrLimits, name, subject)
			}
		}
	}
	return err
}

// changed returns old with this package's settings; other settings, such as placement, belong to the operator.
func changed(old, want jetstream.StreamConfig) jetstream.StreamConfig {
	next := old
	next.Subjects, next.Replicas, next.Discard, next.Duplicates = want.Subjects, want.Replicas, want.Discard, want.Duplicates
	next.MaxAge, next.MaxMsgsPerSubject, next.MaxMsgs, next.RePublish = want.MaxAge, want.MaxMsgsPerSubject, want.MaxMsgs, want.RePublish
	next.MaxBytes = want.MaxBytes
	next.AllowRollup, next.AllowDirect, next.AllowMsgTTL = want.AllowRollup, want.AllowDirect, want.AllowMsgTTL
	return next
}

// StreamUsage is the size of a stream and its limits; a limit of 0 or below is none.
type StreamUsage struct {
	Name            string
	Messages, Bytes uint64
	MaxMessages     int64
	MaxBytes        int64
}

// Fill is the larger of the used shares of both limits, from 0; 0 without limits.
func (u StreamUsage) Fill() float64 {
	fill := 0.0
	if u.MaxMessages > 0 {
		fill = float64(u.Messages) / float64(u.MaxMessages)
	}
	if u.MaxBytes > 0 {
		fill = max(fill, float64(u.Bytes)/float64(u.MaxBytes))
	}
	return fill
}

// Results reports whether the stream is that of the results.
func (u StreamUsage) Results() bool { return u.Name == resultStream }

// Usage returns the sizes of the streams of work and results.
func Usage(ctx context.Context, nc *nats.Conn) ([]StreamUsage, error) {
	l, err := newLink(nc, nil, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("measure streams: %w", err)
	}
	var all []StreamUsage
	for _, name := range []string{workStream, resultStream} {
		err := l.withRetry(ctx, "", func(ctx context.Context) error {
			stream, err := l.js.Stream(ctx, name)
			if err != nil {
				return err
			}
			info := stream.CachedInfo() // fresh
			all = append(all, StreamUsage{
				Name: name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
				MaxMessages: info.Config.MaxMsgs, MaxBytes: info.Config.MaxBytes,
			})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("measure stream %s: %w", name, err)
		}
	}
	return all, nil
}
