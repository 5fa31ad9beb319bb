package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// metadataEpoch is the key of the consumer's metadata with the epoch of its creation.
const metadataEpoch = "ddiff-epoch"

// openConsumer applies this queue's settings to the campaign's consumer, or creates the consumer in a new epoch.
func (q *Queue) openConsumer(ctx context.Context) error {
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			epoch := q.nextEpoch()
			consumer, err = q.js.CreateConsumer(ctx, workStream, q.consumerConfig(epoch))
			if err == nil {
				q.setConsumer(consumer, epoch)
				return nil
			}
			if errors.Is(err, jetstream.ErrConsumerExists) { // another process created it first
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
		if consumer, err = q.js.UpdateConsumer(ctx, workStream, cfg); lostFiles(err) {
			// The server refuses every change until the consumer is created again.
			if err := q.js.DeleteConsumer(ctx, workStream, q.durable()); err != nil && !notFound(err) {
				return err
			}
			epoch = q.nextEpoch()
			consumer, err = q.js.CreateConsumer(ctx, workStream, q.consumerConfig(epoch))
		}
		if err != nil {
			return err
		}
		q.setConsumer(consumer, epoch)
		return nil
	})
	return wrap(err, "consumer %s", q.durable())
}

// codeConsumerCreate is the server's error when it cannot write the files of a consumer.
const codeConsumerCreate jetstream.ErrorCode = 10012

// lostFiles reports whether the server has lost the files of a consumer: a deletion by one process also removes the files
// that the server writes for another process that creates the consumer at the same time.
func lostFiles(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeConsumerCreate
}

// setConsumer stores the consumer, a name on the server that stays valid when the consumer is recreated, and records its epoch.
func (q *Queue) setConsumer(consumer jetstream.Consumer, epoch int64) {
	q.consumer = consumer
	q.recordEpoch(epoch)
}

func (q *Queue) findConsumer(ctx context.Context) error {
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		consumer, err := q.js.Consumer(ctx, workStream, q.durable())
		if err != nil {
			return err
		}
		epoch, err := consumerEpoch(consumer)
		if err != nil {
			return err
		}
		q.setConsumer(consumer, epoch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("consumer %s: %w", q.durable(), err)
	}
	cfg := q.consumer.CachedInfo().Config
	q.cfg.AckWait, q.cfg.MaxAttempts = cfg.AckWait, (cfg.MaxDeliver-spareDeliveries)/deliveriesPerAttempt
	return nil
}

func (q *Queue) consumerConfig(epoch int64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       q.durable(),
		FilterSubject: q.workFilter(),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       q.cfg.AckWait,
		MaxDeliver:    deliveriesPerAttempt*q.cfg.MaxAttempts + spareDeliveries,
		MaxAckPending: maxAckPending,
		MaxWaiting:    maxWaiting,
		Metadata:      map[string]string{metadataEpoch: formatEpoch(epoch)},
	}
}

// nextEpoch returns an epoch after every epoch that this process has seen.
func (q *Queue) nextEpoch() int64 { return max(q.cfg.Now().UnixNano(), q.epoch.Load()+1) }

func consumerEpoch(consumer jetstream.Consumer) (int64, error) {
	epoch, err := parseEpoch(consumer.CachedInfo().Config.Metadata[metadataEpoch])
	return epoch, wrap(err, "read %s", metadataEpoch)
}

func formatEpoch(epoch int64) string { return strconv.FormatInt(epoch, 36) }

func parseEpoch(s string) (int64, error) { return strconv.ParseInt(s, 36, 64) }

func notFound(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// farFuture is the end of a pause without a time limit.
var farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Pause stops the delivery of the campaign's items. Leases stay valid. It is idempotent. ErrNotReady: the campaign does
// not exist.
func (q *Queue) Pause(ctx context.Context) error {
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		_, err := q.js.PauseConsumer(ctx, workStream, q.durable(), farFuture)
		return err
	})
	return wrap(err, "pause campaign %s", q.cfg.Campaign)
}

// Resume ends a pause. It is idempotent.
func (q *Queue) Resume(ctx context.Context) error {
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		_, err := q.js.ResumeConsumer(ctx, workStream, q.durable())
		return err
	})
	return wrap(err, "resume campaign %s", q.cfg.Campaign)
}

// Drop removes the campaign's consumer and all of its work. Results stay, and workers may still
// publish results of leased items. It is idempotent. Open creates the campaign again.
func (q *Queue) Drop(ctx context.Context) error {
	err := q.deleteConsumer(ctx)
	if err == nil {
		err = q.purgeAll(ctx, workStream, q.workFilter())
	}
	return wrap(err, "drop campaign %s", q.cfg.Campaign)
}

// Remove removes everything of the campaign: consumer, work and results. It is idempotent.
func (q *Queue) Remove(ctx context.Context) error {
	return wrap(q.removeAll(ctx), "remove campaign %s", q.cfg.Campaign)
}

func (q *Queue) removeAll(ctx context.Context) error {
	if err := q.deleteConsumer(ctx); err != nil {
		return err
	}
	for _, purge := range []struct{ stream, filter string }{
		{workStream, q.workFilter()},
		{resultStream, resultSubject + "." + q.campaign},
	} {
		if err := q.purgeAll(ctx, purge.stream, purge.filter); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) deleteConsumer(ctx context.Context) error {
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		return q.js.DeleteConsumer(ctx, workStream, q.durable())
	})
	if err != nil && !notFound(err) {
		return fmt.Errorf("delete consumer: %w", err)
	}
	return nil
}

// purgeAll removes the messages of a subject. A missing stream is no error.
func (q *Queue) purgeAll(ctx context.Context, name, filter string) error {
	err := q.purge(ctx, name, filter)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return wrap(err, "purge %s", name)
}

// purge removes the messages of a subject.
func (q *Queue) purge(ctx context.Context, name, filter string, options ...jetstream.StreamPurgeOpt) error {
	return q.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := q.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		return stream.Purge(ctx, append(options, jetstream.WithPurgeSubject(filter))...)
	})
}
