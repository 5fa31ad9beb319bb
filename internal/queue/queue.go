package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// deliveriesPerAttempt and spareDeliveries: the server delivers an item deliveriesPerAttempt × MaxAttempts + spareDeliveries times.
	// Deliveries after MaxAttempts are for items whose workers perhaps ended for another reason; the spare ones are for workers that only
	// publish the item as dead.
	deliveriesPerAttempt = 4
	spareDeliveries      = 2
	// maxAckPending limits the leases of one campaign. 5,000 workers with batches of 64, three of which are in flight,
	// have 960,000. A lease costs the server 200 bytes.
	maxAckPending = 1 << 20
	// maxWaiting limits the waiting calls of Lease of one campaign. Calls above the limit wait here, see Queue.fetch. The
	// server cannot change the limit of a consumer, nor can an older coordinator open a consumer with another one.
	maxWaiting = 1 << 12
	// publishTimeout limits the wait for the server's answer to one message of a batch.
	publishTimeout = 10 * time.Second
)

// Queue is the queue of one campaign; Open, Attach and Inspect return one. All methods may be called concurrently.
// Unless its comment says otherwise, a method retries for Config.Timeout while the server does not answer, and then
// returns ErrUnavailable.
type Queue struct {
	*link
	cfg      Config
	campaign string // as a token
	consumer jetstream.Consumer

	// epoch is the newest epoch that this process has seen; the package comment explains epochs.
	epoch atomic.Int64
}

// Open connects to a campaign's queue and creates missing streams and the campaign's consumer. Messages in the queue
// stay. The coordinator calls Open, also to repair the queue when Exists returns false. The caller keeps ownership of
// the connection.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	q, err := newQueue(nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if err := q.setupStreams(ctx, (SetupConfig{Replicas: q.cfg.Replicas}).WithDefaults(), false); err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, err)
	}
	if err := q.openConsumer(ctx); err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, err)
	}
	return q, nil
}

// Attach connects a worker to a campaign's queue that a coordinator has opened, and adopts the coordinator's settings.
// It creates nothing and returns ErrNotReady when the queue does not exist (yet).
//
// The handle stays valid when the coordinator recreates the queue; Lease returns ErrNotReady in the meantime.
func Attach(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	q, err := newQueue(nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("attach to queue: %w", err)
	}
	if err := q.findConsumer(ctx); err != nil {
		return nil, fmt.Errorf("attach to queue of campaign %s: %w", cfg.Campaign, err)
	}
	return q, nil
}

// Inspect returns a campaign's queue for reading results, also of a dropped campaign. It sends no
// request. Lease returns ErrNotReady.
func Inspect(nc *nats.Conn, cfg Config) (*Queue, error) {
	q, err := newQueue(nc, cfg)
	return q, wrap(err, "inspect queue")
}

func newQueue(nc *nats.Conn, cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	campaign, err := token("Campaign", cfg.Campaign)
	if err != nil {
		return nil, err
	}
	l, err := newLink(nc, cfg.Logger, cfg.Timeout)
	if err != nil {
		return nil, err
	}
	return &Queue{link: l, cfg: cfg, campaign: campaign}, nil
}

// Config returns the settings with defaults; after Attach, with the coordinator's values.
func (q *Queue) Config() Config { return q.cfg }

// Exists reports whether the campaign's consumer exists. It does not after Drop, or after the work stream was deleted;
// Setup and Open then create both again, empty.
func (q *Queue) Exists(ctx context.Context) (bool, error) {
	found := false
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		_, err := q.js.Consumer(ctx, workStream, q.durable())
		if found = err == nil; notFound(err) {
			return nil
		}
		return err
	})
	return found, wrap(err, "look for queue of campaign %s", q.cfg.Campaign)
}

// Depth counts the campaign's items: pending items were never leased; items in flight are leased or wait for their next
// attempt. Acknowledged items are in neither count.
func (q *Queue) Depth(ctx context.Context) (pending, inFlight uint64, err error) {
	var info *jetstream.ConsumerInfo
	err = q.withRetry(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if err == nil {
			info = consumer.CachedInfo() // fresh
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("depth of campaign %s: %w", q.cfg.Campaign, err)
	}
	return info.NumPending, uint64(max(info.NumAckPending, 0)), nil
}

// Size counts the campaign's items that are in the queue in any state: waiting, leased, delayed, or no longer delivered
// and not yet swept. The stream's leader answers, so that Size includes every item whose publication has returned, and
// excludes every item whose acknowledgement has returned. The counts of Depth may lag, and omit undeliverable items. A
// released item may count twice for a moment. Without a work stream the size is 0.
func (q *Queue) Size(ctx context.Context) (uint64, error) {
	var size uint64
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := q.js.Stream(ctx, workStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			size = 0
			return nil
		}
		if err != nil {
			return err
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(q.workFilter()))
		if err != nil {
			return err
		}
		size = 0
		for _, n := range info.State.Subjects {
			size += n
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("size of campaign %s: %w", q.cfg.Campaign, err)
	}
	return size, nil
}

const durablePrefix = "ddiff-"

func (q *Queue) durable() string { return durablePrefix + q.campaign }

func (q *Queue) workFilter() string { return workSubject + "." + q.campaign + ".>" }

// recordEpoch raises q.epoch to epoch if epoch is newer.
func (q *Queue) recordEpoch(epoch int64) {
	for {
		old := q.epoch.Load()
		if epoch <= old || q.epoch.CompareAndSwap(old, epoch) {
			return
		}
	}
}

// Config describes a campaign's queue. Open stores AckWait and MaxAttempts on the server; Attach ignores its own values
// and adopts the stored ones.
type Config struct {
	// Campaign is the campaign's name, 1 to MaxNameBytes bytes. Campaigns are isolated from each other.
	Campaign string
	// AckWait is the duration of a lease without an Extend. Default 30 s.
	AckWait time.Duration
	// MaxAttempts is the number of attempts at an item, at least 1. Default 3.
	MaxAttempts int
	// Replicas is the number of servers that store each message of a stream that Open creates, 1 to 5; Setup changes it
	// for existing streams. Default 1.
	Replicas int
	// RetryBase is the longest delay after the first attempt, see Lease.RetryDelay. Default 1 s.
	RetryBase time.Duration
	// Timeout limits the retries of a call while the server does not answer; the call then returns ErrUnavailable.
	// Default 30 s.
	Timeout time.Duration
	// Now is the clock of epochs. Default time.Now.
	Now func() time.Time
	// Logger receives problems that no error reports. Default: no log.
	Logger *slog.Logger
	// Tracer receives the spans of publishing, leasing and settling. Default: no spans; the caller's trace context
	// still travels with the items.
	Tracer trace.Tracer
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.RetryBase = cmp.Or(c.RetryBase, time.Second)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Tracer = cmp.Or(c.Tracer, noop.NewTracerProvider().Tracer(""))
	return c
}

// Validate reports the first field that is out of range, after defaults are applied. The error wraps ErrConfig, or
// ErrBadName for the campaign.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if _, err := token("Campaign", c.Campaign); err != nil {
		return err
	}
	switch {
	case c.AckWait < 10*time.Millisecond:
		return fmt.Errorf("%w: AckWait is %v, at least 10ms is needed", ErrConfig, c.AckWait)
	case c.MaxAttempts < 1:
		return fmt.Errorf("%w: MaxAttempts is %d, at least 1 is needed", ErrConfig, c.MaxAttempts)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("%w: Replicas is %d, 1 to 5 are allowed", ErrConfig, c.Replicas)
	case c.RetryBase < 0:
		return fmt.Errorf("%w: RetryBase is %v, it must not be negative", ErrConfig, c.RetryBase)
	case c.Timeout < 0:
		return fmt.Errorf("%w: Timeout is %v, it must not be negative", ErrConfig, c.Timeout)
	}
	return nil
}
