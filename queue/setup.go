package queue

import (
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
	// dedupWindow is how long the server knows the ids of published messages. It has to
	// outlast the time in which a publish is tried again. Each id costs the server's memory
	// for that long.
	dedupWindow = 2 * time.Minute
	// deadDedupWindow is the same for dead letters, which are few.
	deadDedupWindow = time.Hour
	// markerAge is how long the board remembers that a record was deleted.
	markerAge = time.Hour
)

// SetupConfig describes what a cluster keeps on its queue server.
type SetupConfig struct {
	// Replicas is the number of servers that hold each message: 1, 3 or 5. Default 1.
	Replicas int
	// MaxBytes limits the work that waits; what is over it is refused with ErrFull. Default:
	// the server's limit alone.
	MaxBytes int64
	// UnsyncedWork lets the server answer for work before it is written, also where it is set
	// to sync every message: its death then loses the newest work, which a coordinator finds
	// missing and publishes again. Only with one replica, and only for a stream that is
	// created. It is not for results and dead letters, which are always kept as the server
	// is set.
	UnsyncedWork bool
	// DeadAge and ResultAge are how long dead letters and results are kept. Default 90 days;
	// below 0: for ever.
	DeadAge, ResultAge time.Duration
	// Now is the clock by which streams that are created get their first number, see the
	// package comment. Default time.Now.
	Now func() time.Time
	// Logger is told of streams that are created or changed. Default: nothing is logged.
	Logger *slog.Logger
}

// WithDefaults returns c with every zero field set to its default.
func (c SetupConfig) WithDefaults() SetupConfig {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.DeadAge == 0 {
		c.DeadAge = 90 * 24 * time.Hour
	}
	if c.ResultAge == 0 {
		c.ResultAge = 90 * 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports the first field that is out of its range, after the defaults are set.
func (c SetupConfig) Validate() error {
	c = c.WithDefaults()
	switch {
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("%w: Replicas is %d, 1 to 5 are allowed", ErrConfig, c.Replicas)
	case c.MaxBytes < 0:
		return fmt.Errorf("%w: MaxBytes is %d, it must not be negative", ErrConfig, c.MaxBytes)
	case c.UnsyncedWork && c.Replicas > 1:
		return fmt.Errorf("%w: UnsyncedWork needs Replicas 1, not %d", ErrConfig, c.Replicas)
	case c.DeadAge > 0 && c.DeadAge < deadDedupWindow:
		return fmt.Errorf("%w: DeadAge is %v, at least %v is needed", ErrConfig, c.DeadAge, deadDedupWindow)
	case c.ResultAge > 0 && c.ResultAge < dedupWindow:
		return fmt.Errorf("%w: ResultAge is %v, at least %v is needed", ErrConfig, c.ResultAge, dedupWindow)
	}
	return nil
}

// streams lists all that a cluster keeps.
func (c SetupConfig) streams() []jetstream.StreamConfig {
	unlimited := func(n int64) int64 {
		if n <= 0 {
			return -1
		}
		return n
	}
	streams := []jetstream.StreamConfig{{
		Name: workStream, Subjects: []string{workSubject + ".>"}, Retention: jetstream.WorkQueuePolicy,
		MaxBytes: unlimited(c.MaxBytes), Duplicates: dedupWindow,
	}, {
		Name: deadStream, Subjects: []string{deadSubject + ".>"}, MaxAge: max(c.DeadAge, 0), Duplicates: deadDedupWindow,
	}, {
		Name: resultStream, Subjects: []string{resultSubject + ".>"}, MaxAge: max(c.ResultAge, 0), Duplicates: dedupWindow,
	}, {
		Name: advisoryStream, Subjects: []string{advisorySubject + ".>"}, Retention: jetstream.WorkQueuePolicy, Duplicates: dedupWindow,
	}, {
		// A key-value bucket as the NATS tools know it, but read at the leader only, so that
		// who has written a record reads what he wrote.
		Name: boardStream, Subjects: []string{boardSubject + ".>"}, MaxMsgsPerSubject: 1, Duplicates: dedupWindow,
		AllowRollup: true, DenyDelete: true, AllowMsgTTL: true,
	}}
	if c.UnsyncedWork {
		streams[0].PersistMode = jetstream.AsyncPersistMode
	}
	for i := range streams {
		s := &streams[i]
		s.Storage, s.Replicas = jetstream.FileStorage, c.Replicas
		s.Discard = jetstream.DiscardNew // never drop a message to make room
		s.MaxConsumers, s.MaxMsgs, s.MaxBytes, s.MaxMsgSize = -1, -1, unlimited(s.MaxBytes), -1
		if s.MaxMsgsPerSubject == 0 {
			s.MaxMsgsPerSubject = -1
		}
	}
	return streams
}

// Setup creates the streams and the board that a cluster needs, and gives those that exist
// the settings of cfg. It changes nothing when all is as it should be. A coordinator calls it
// at its start, and again when Queue.Exists says that something was deleted.
func Setup(ctx context.Context, nc *nats.Conn, cfg SetupConfig) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("set up queue: %w", err)
	}
	cfg = cfg.WithDefaults()
	l, err := newLink(nc, cfg.Logger, defaultPatience)
	if err != nil {
		return fmt.Errorf("set up queue: %w", err)
	}
	for _, stream := range cfg.streams() {
		if err := l.setupStream(ctx, stream, cfg.Now, true); err != nil {
			return fmt.Errorf("set up queue: %w", err)
		}
	}
	return nil
}

// setupStream creates a stream, or, if update is set, changes it where it is not as it should.
func (l *link) setupStream(ctx context.Context, want jetstream.StreamConfig, now func() time.Time, update bool) error {
	err := l.persist(ctx, "", func(ctx context.Context) error {
		stream, err := l.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			// Numbers of a stream that was deleted are not used again: an answer to one of
			// its messages would be taken for an answer to a new one.
			want.FirstSeq = uint64(max(now().UnixMicro(), 1))
			if _, err = l.js.CreateStream(ctx, want); err == nil {
				l.logger.Info("created stream", "stream", want.Name, "replicas", want.Replicas)
				return nil
			}
			if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				return err
			}
			stream, err = l.js.Stream(ctx, want.Name) // somebody else was quicker
		}
		if err != nil || !update {
			return err
		}
		old := stream.CachedInfo().Config
		if old.Retention != want.Retention {
			return fmt.Errorf("%w: a stream of this name that ddiff has not made is on the server", ErrConfig)
		}
		next := changed(old, want)
		if reflect.DeepEqual(old, next) {
			return nil
		}
		if _, err = l.js.UpdateStream(ctx, next); err == nil {
			l.logger.Info("changed stream", "stream", want.Name, "replicas", want.Replicas)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", want.Name, err)
	}
	return nil
}

// changed is old with what this package decides; the rest, as placement, is the operator's.
func changed(old, want jetstream.StreamConfig) jetstream.StreamConfig {
	next := old
	next.Subjects, next.Replicas, next.Discard, next.Duplicates = want.Subjects, want.Replicas, want.Discard, want.Duplicates
	next.MaxBytes, next.MaxAge, next.MaxMsgsPerSubject = want.MaxBytes, want.MaxAge, want.MaxMsgsPerSubject
	next.AllowRollup, next.AllowMsgTTL, next.AllowDirect = want.AllowRollup, want.AllowMsgTTL, want.AllowDirect
	return next
}
