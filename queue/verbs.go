package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// forEver is when a pause ends that nobody ends before.
var forEver = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Pause stops the server from handing out the campaign's items. Leases that are held stay
// good. Pausing a paused campaign changes nothing. ErrNotReady: there is no such campaign.
func (q *Queue) Pause(ctx context.Context) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		_, err := q.js.PauseConsumer(ctx, workStream, q.durable(), forEver)
		return err
	})
	if err != nil {
		return fmt.Errorf("pause campaign %s: %w", q.cfg.Campaign, err)
	}
	return nil
}

// Unpause ends a pause. It changes nothing when there is none.
func (q *Queue) Unpause(ctx context.Context) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		_, err := q.js.ResumeConsumer(ctx, workStream, q.durable())
		return err
	})
	if err != nil {
		return fmt.Errorf("resume campaign %s: %w", q.cfg.Campaign, err)
	}
	return nil
}

// Reset drops all work, results and dead letters of the campaign and starts a new epoch. It
// is for the coordinator, at its start; leases that workers hold come to nothing, but what
// they write to storage stays good. A pause ends.
func (q *Queue) Reset(ctx context.Context) error {
	// Another process may have reset the campaign since this one opened it.
	err := q.openConsumer(ctx)
	if err == nil {
		err = q.removeAll(ctx)
	}
	if err == nil {
		// The epoch must begin after the purge, also when a worker has just opened the queue
		// and has made the consumer: a result that was purged may then be published again.
		err = q.newEpoch(ctx)
	}
	if err != nil {
		return fmt.Errorf("reset campaign %s: %w", q.cfg.Campaign, err)
	}
	return nil
}

// newEpoch makes the consumer in a new epoch.
func (q *Queue) newEpoch(ctx context.Context) error {
	epoch := q.nextEpoch()
	err := q.persist(ctx, "", func(ctx context.Context) (err error) {
		_, err = q.js.CreateOrUpdateConsumer(ctx, workStream, q.consumerConfig(epoch))
		return err
	})
	if err != nil {
		return fmt.Errorf("create consumer: %w", err)
	}
	q.sawEpoch(epoch)
	return nil
}

// Drop removes the campaign's consumer and all of its work. Results and dead letters stay, and
// workers that hold an item may still publish its result. It can be called again, also when
// nothing is there; after Drop, Open begins anew.
func (q *Queue) Drop(ctx context.Context) error {
	err := q.deleteConsumer(ctx)
	if err == nil {
		err = q.purge(ctx, workStream, q.workFilter())
	}
	if err != nil {
		return fmt.Errorf("drop campaign %s: %w", q.cfg.Campaign, err)
	}
	return nil
}

// Remove is Drop, and removes results and dead letters too: nothing of the campaign is left.
func (q *Queue) Remove(ctx context.Context) error {
	if err := q.removeAll(ctx); err != nil {
		return fmt.Errorf("remove campaign %s: %w", q.cfg.Campaign, err)
	}
	return nil
}

func (q *Queue) removeAll(ctx context.Context) error {
	if err := q.deleteConsumer(ctx); err != nil {
		return err
	}
	for _, purge := range []struct{ stream, filter string }{
		{workStream, q.workFilter()},
		{deadStream, deadSubject + "." + q.campaign},
		{resultStream, resultSubject + "." + q.campaign},
	} {
		if err := q.purge(ctx, purge.stream, purge.filter); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) deleteConsumer(ctx context.Context) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		return q.js.DeleteConsumer(ctx, workStream, q.durable())
	})
	if err != nil && !gone(err) {
		return fmt.Errorf("delete consumer: %w", err)
	}
	return nil
}

// purge removes the messages of a subject. A stream that is not there has none.
func (q *Queue) purge(ctx context.Context, name, filter string) error {
	err := q.persist(ctx, "", func(ctx context.Context) error {
		stream, err := q.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		return stream.Purge(ctx, jetstream.WithPurgeSubject(filter))
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("purge %s: %w", name, err)
	}
	return nil
}
