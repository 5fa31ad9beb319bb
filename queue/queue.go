package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// dedupWindow is how long the server knows the ids of published messages.
	dedupWindow = 10 * time.Minute
	// spareDeliveries are left after MaxAttempts for workers that only bury.
	spareDeliveries = 2
	// maxAckPending and maxWaiting bound the leases and the waiting calls of Lease of a
	// whole campaign. At the bound a fleet would idle for no visible reason, so both are
	// far above what a fleet needs.
	maxAckPending = 1 << 16
	maxWaiting    = 1 << 12
	// publishTimeout bounds the wait for the server's answer in a batch.
	publishTimeout = 30 * time.Second
	// settleTimeout bounds the wait for the server where the caller's context does not.
	settleTimeout = 5 * time.Second
)

// The headers of a message, besides the trace context.
const (
	headerID    = "Ddiff-Id"
	headerEpoch = "Ddiff-Epoch"
)

// metadataEpoch is the consumer's metadata that names the epoch.
const metadataEpoch = "ddiff-epoch"

// Queue is one campaign's queue. Open makes one. All methods may be called concurrently.
type Queue struct {
	cfg      Config
	campaign string // as a token
	nc       *nats.Conn
	js       jetstream.JetStream
	work     jetstream.Stream
	dead     jetstream.Stream
	results  jetstream.Stream
	consumer jetstream.Consumer

	// epoch is the newest one that this process has seen, see the package comment.
	epoch atomic.Int64
}

// Open connects to a campaign's queue and creates what is missing on the server. What the
// queue holds is left as it is. The connection stays the caller's.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	cfg = cfg.WithDefaults()
	campaign, err := token("Campaign", cfg.Campaign)
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishTimeout))
	if err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, err)
	}
	q := &Queue{cfg: cfg, campaign: campaign, nc: nc, js: js}
	if err := q.createStreams(ctx); err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, serverError(err))
	}
	// The handle is a name for the server, so it stays good when Reset makes the consumer anew.
	if q.consumer, err = q.openConsumer(ctx); err != nil {
		return nil, fmt.Errorf("open queue of campaign %s: %w", cfg.Campaign, serverError(err))
	}
	return q, nil
}

func (q *Queue) createStreams(ctx context.Context) error {
	for _, stream := range []struct {
		to        *jetstream.Stream
		name      string
		subject   string
		retention jetstream.RetentionPolicy
	}{
		{&q.work, workStream, workSubject, jetstream.WorkQueuePolicy},
		{&q.dead, deadStream, deadSubject, jetstream.LimitsPolicy},
		{&q.results, resultStream, resultSubject, jetstream.LimitsPolicy},
	} {
		created, err := q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:       stream.name,
			Subjects:   []string{stream.subject + ".>"},
			Retention:  stream.retention,
			Storage:    jetstream.FileStorage,
			Replicas:   q.cfg.Replicas,
			Discard:    jetstream.DiscardNew, // never drop a message to make room
			Duplicates: dedupWindow,
		})
		if err != nil {
			return fmt.Errorf("create stream %s: %w", stream.name, err)
		}
		*stream.to = created
	}
	return nil
}

// openConsumer finds the campaign's consumer, or creates it in a new epoch.
func (q *Queue) openConsumer(ctx context.Context) (jetstream.Consumer, error) {
	consumer, err := q.work.Consumer(ctx, q.durable())
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		epoch := q.nextEpoch()
		consumer, err = q.work.CreateConsumer(ctx, q.consumerConfig(epoch))
		if err == nil {
			q.sawEpoch(epoch)
			return consumer, nil
		}
		if errors.Is(err, jetstream.ErrConsumerExists) { // somebody else was quicker
			consumer, err = q.work.Consumer(ctx, q.durable())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open consumer %s: %w", q.durable(), err)
	}
	epoch, err := consumerEpoch(consumer)
	if err != nil {
		return nil, err
	}
	consumer, err = q.work.UpdateConsumer(ctx, q.consumerConfig(epoch))
	if err != nil {
		return nil, fmt.Errorf("update consumer %s: %w", q.durable(), err)
	}
	q.sawEpoch(epoch)
	return consumer, nil
}

// nextEpoch is an epoch after all that this process knows.
func (q *Queue) nextEpoch() int64 { return max(q.cfg.Now().UnixNano(), q.epoch.Load()+1) }

func (q *Queue) consumerConfig(epoch int64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       q.durable(),
		FilterSubject: workSubject + "." + q.campaign + ".>",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       q.cfg.AckWait,
		MaxDeliver:    q.cfg.MaxAttempts + spareDeliveries,
		MaxAckPending: maxAckPending,
		MaxWaiting:    maxWaiting,
		Metadata:      map[string]string{metadataEpoch: formatEpoch(epoch)},
	}
}

// consumerEpoch is the epoch in which a consumer was created.
func consumerEpoch(consumer jetstream.Consumer) (int64, error) {
	info := consumer.CachedInfo()
	epoch, err := parseEpoch(info.Config.Metadata[metadataEpoch])
	if err != nil {
		return 0, fmt.Errorf("read %s of consumer %s: %w", metadataEpoch, info.Name, err)
	}
	return epoch, nil
}

func formatEpoch(epoch int64) string { return strconv.FormatInt(epoch, 36) }

func parseEpoch(s string) (int64, error) { return strconv.ParseInt(s, 36, 64) }

func (q *Queue) durable() string { return "ddiff-" + q.campaign }

// sawEpoch remembers an epoch when it is newer than those before.
func (q *Queue) sawEpoch(epoch int64) {
	for {
		old := q.epoch.Load()
		if epoch <= old || q.epoch.CompareAndSwap(old, epoch) {
			return
		}
	}
}

// Reset drops all work, results and dead letters of the campaign and starts a new epoch. It
// is for the coordinator, at its start; leases that workers hold come to nothing, but what
// they write to storage stays good.
func (q *Queue) Reset(ctx context.Context) error {
	// Another process may have reset the campaign since this one opened it.
	if _, err := q.openConsumer(ctx); err != nil {
		return fmt.Errorf("reset campaign %s: %w", q.cfg.Campaign, serverError(err))
	}
	err := q.work.DeleteConsumer(ctx, q.durable())
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("reset campaign %s: delete consumer: %w", q.cfg.Campaign, serverError(err))
	}
	for _, purge := range []struct {
		stream  jetstream.Stream
		name    string
		subject string
	}{
		{q.work, workStream, workSubject + "." + q.campaign + ".>"},
		{q.dead, deadStream, deadSubject + "." + q.campaign},
		{q.results, resultStream, resultSubject + "." + q.campaign},
	} {
		if err := purge.stream.Purge(ctx, jetstream.WithPurgeSubject(purge.subject)); err != nil {
			return fmt.Errorf("reset campaign %s: purge %s: %w", q.cfg.Campaign, purge.name, serverError(err))
		}
	}
	// The epoch must begin after the purge, also when a worker has just opened the queue and
	// has made the consumer: a result that was purged may then be published again.
	epoch := q.nextEpoch()
	if _, err := q.work.CreateOrUpdateConsumer(ctx, q.consumerConfig(epoch)); err != nil {
		return fmt.Errorf("reset campaign %s: create consumer: %w", q.cfg.Campaign, serverError(err))
	}
	q.sawEpoch(epoch)
	return nil
}

// Depth counts the campaign's items: pending ones were never leased, those in flight are
// leased or wait for their next attempt. Items that Ack or Bury ended are in neither.
func (q *Queue) Depth(ctx context.Context) (pending, inFlight uint64, err error) {
	consumer, err := q.work.Consumer(ctx, q.durable())
	if err != nil {
		return 0, 0, fmt.Errorf("depth of campaign %s: %w", q.cfg.Campaign, serverError(err))
	}
	info := consumer.CachedInfo() // just asked for
	return info.NumPending, uint64(max(info.NumAckPending, 0)), nil
}

// messageID is the id by which the server recognises a message of an epoch. A stream's ids
// are shared by all campaigns, so the campaign is part of it.
func (q *Queue) messageID(epoch int64, id string) string {
	return q.campaign + "/" + formatEpoch(epoch) + "/" + id
}

// confirm waits until the server has received what was sent.
func (q *Queue) confirm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return q.nc.FlushWithContext(ctx)
}
