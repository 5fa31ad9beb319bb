package queue

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// spareDeliveries are left after MaxAttempts for workers that only bury.
	spareDeliveries = 2
	// maxAckPending and maxWaiting bound the leases and the waiting calls of Lease of a
	// whole campaign. At the bound a fleet would idle for no visible reason, so both are
	// far above what a fleet needs.
	maxAckPending = 1 << 16
	maxWaiting    = 1 << 12
	// publishTimeout bounds the wait for the server's answer in a batch.
	publishTimeout = 10 * time.Second
)

// Queue is one campaign's queue. Open, Attach and Inspect make one. All methods may be called
// concurrently. Unless it says otherwise, a method goes on trying for Config.Patience when the
// server does not answer, and then returns ErrUnavailable.
type Queue struct {
	*link
	cfg      Config
	campaign string // as a token
	consumer jetstream.Consumer

	// epoch is the newest one that this process has seen, see the package comment.
	epoch atomic.Int64
}

// Open connects to a campaign's queue and creates what is missing on the server. What the
// queue holds is left as it is. It is for the coordinator, which calls it again when Exists
// says that something was deleted. The connection stays the caller's.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	q, err := newQueue(nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	for _, stream := range (SetupConfig{Replicas: q.cfg.Replicas}).WithDefaults().streams() {
		if err := q.setupStream(ctx, stream, q.cfg.Now, false); err != nil {
			return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, err)
		}
	}
	if err := q.openConsumer(ctx); err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, err)
	}
	return q, nil
}

// Attach connects to a campaign's queue that a coordinator has opened, and takes over its
// settings. It creates nothing, and returns ErrNotReady when the queue does not exist (yet).
// It is for workers.
//
// The queue stays good when the coordinator resets or creates it anew; Lease returns
// ErrNotReady meanwhile.
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

// Inspect is a campaign's queue without a look at the server, for its results and dead letters
// alone: they are there also when the campaign was dropped. Its Lease returns ErrNotReady.
func Inspect(nc *nats.Conn, cfg Config) (*Queue, error) {
	q, err := newQueue(nc, cfg)
	if err != nil {
		return nil, fmt.Errorf("inspect queue: %w", err)
	}
	return q, nil
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
	l, err := newLink(nc, cfg.Logger, cfg.Patience)
	if err != nil {
		return nil, err
	}
	return &Queue{link: l, cfg: cfg, campaign: campaign}, nil
}

// Config is how the queue is set, with defaults and, after Attach, the coordinator's values.
func (q *Queue) Config() Config { return q.cfg }

// Exists reports whether the campaign can be worked on: whether its consumer is there. It is
// not after Drop, or when somebody deleted the stream of work; then Setup and Open make it
// anew, empty.
func (q *Queue) Exists(ctx context.Context) (bool, error) {
	found := false
	err := q.persist(ctx, "", func(ctx context.Context) error {
		_, err := q.js.Consumer(ctx, workStream, q.durable())
		found = err == nil
		if gone(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for queue of campaign %s: %w", q.cfg.Campaign, err)
	}
	return found, nil
}

// Depth counts the campaign's items: pending ones were never leased, those in flight are
// leased or wait for their next attempt. Items that Ack or Bury ended are in neither.
func (q *Queue) Depth(ctx context.Context) (pending, inFlight uint64, err error) {
	var info *jetstream.ConsumerInfo
	err = q.persist(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if err == nil {
			info = consumer.CachedInfo() // just asked for
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("depth of campaign %s: %w", q.cfg.Campaign, err)
	}
	return info.NumPending, uint64(max(info.NumAckPending, 0)), nil
}

const durablePrefix = "ddiff-"

func (q *Queue) durable() string { return durablePrefix + q.campaign }

func (q *Queue) workFilter() string { return workSubject + "." + q.campaign + ".>" }

// campaignOf is the campaign of a subject of this package.
func campaignOf(subject string) (string, error) {
	parts := strings.Split(subject, ".")
	if len(parts) < 3 {
		return "", fmt.Errorf("%w: subject %q", ErrBadName, subject)
	}
	return untoken(parts[2])
}

// sawEpoch remembers an epoch when it is newer than those before.
func (q *Queue) sawEpoch(epoch int64) {
	for {
		old := q.epoch.Load()
		if epoch <= old || q.epoch.CompareAndSwap(old, epoch) {
			return
		}
	}
}
