package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What the consumer's metadata tell: the epoch in which it was made, and the settings that the
// server itself has no use for.
const (
	metadataEpoch     = "ddiff-epoch"
	metadataRetryBase = "ddiff-retry-base"
	metadataRetryMax  = "ddiff-retry-max"
)

// openConsumer finds the campaign's consumer and gives it the settings of this queue, or
// creates it in a new epoch.
func (q *Queue) openConsumer(ctx context.Context) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			epoch := q.nextEpoch()
			consumer, err = q.js.CreateConsumer(ctx, workStream, q.consumerConfig(epoch))
			if err == nil {
				q.adopt(consumer)
				q.sawEpoch(epoch)
				return nil
			}
			if errors.Is(err, jetstream.ErrConsumerExists) { // somebody else was quicker
				consumer, err = q.js.Consumer(ctx, workStream, q.durable())
			}
		}
		if err != nil {
			return err
		}
		epoch, err := consumerEpoch(consumer)
		if err != nil {
			return err
		}
		cfg := q.consumerConfig(epoch)
		cfg.PauseUntil = consumer.CachedInfo().Config.PauseUntil
		if consumer, err = q.js.UpdateConsumer(ctx, workStream, cfg); err != nil {
			return err
		}
		q.adopt(consumer)
		q.sawEpoch(epoch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("consumer %s: %w", q.durable(), err)
	}
	return nil
}

// adopt keeps the first handle. It is a name for the server, and stays good when the consumer
// is made anew; Reset must not change what Lease reads at the same time.
func (q *Queue) adopt(consumer jetstream.Consumer) {
	if q.consumer == nil {
		q.consumer = consumer
	}
}

// findConsumer finds the campaign's consumer and takes over its settings.
func (q *Queue) findConsumer(ctx context.Context) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if err != nil {
			return err
		}
		epoch, err := consumerEpoch(consumer)
		if err != nil {
			return err
		}
		q.consumer = consumer
		q.sawEpoch(epoch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("consumer %s: %w", q.durable(), err)
	}
	cfg := q.consumer.CachedInfo().Config
	q.cfg.AckWait, q.cfg.MaxAttempts = cfg.AckWait, cfg.MaxDeliver-spareDeliveries
	for key, to := range map[string]*time.Duration{metadataRetryBase: &q.cfg.RetryBase, metadataRetryMax: &q.cfg.RetryMax} {
		if d, err := time.ParseDuration(cfg.Metadata[key]); err == nil {
			*to = d
		}
	}
	return nil
}

func (q *Queue) consumerConfig(epoch int64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       q.durable(),
		FilterSubject: q.workFilter(),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       q.cfg.AckWait,
		MaxDeliver:    q.cfg.MaxAttempts + spareDeliveries,
		MaxAckPending: maxAckPending,
		MaxWaiting:    maxWaiting,
		Metadata: map[string]string{
			metadataEpoch:     formatEpoch(epoch),
			metadataRetryBase: q.cfg.RetryBase.String(),
			metadataRetryMax:  q.cfg.RetryMax.String(),
		},
	}
}

// nextEpoch is an epoch after all that this process knows.
func (q *Queue) nextEpoch() int64 { return max(q.cfg.Now().UnixNano(), q.epoch.Load()+1) }

// consumerEpoch is the epoch in which a consumer was created.
func consumerEpoch(consumer jetstream.Consumer) (int64, error) {
	info := consumer.CachedInfo()
	epoch, err := parseEpoch(info.Config.Metadata[metadataEpoch])
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", metadataEpoch, err)
	}
	return epoch, nil
}

func formatEpoch(epoch int64) string { return strconv.FormatInt(epoch, 36) }

func parseEpoch(s string) (int64, error) { return strconv.ParseInt(s, 36, 64) }

// gone reports whether the consumer or its stream does not exist.
func gone(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}
