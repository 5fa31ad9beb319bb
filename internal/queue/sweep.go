package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/retry"
)

// SweepConfig configures Sweep.
type SweepConfig struct {
	// Outcome returns the payload of the result event of a swept item. After an error the item stays until the next scan. Required.
	Outcome func() (payload []byte, err error)
	// Interval is the time between two scans. Default 10 s.
	Interval time.Duration
	// Logger receives every swept item. Default: no log.
	Logger *slog.Logger
}

// sweeper removes the items that the server no longer delivers.
type sweeper struct {
	*link
	cfg SweepConfig
	// suspects are the sequence numbers of undeliverable messages at the last scan.
	suspects map[uint64]bool
}

// Sweep removes the items that the server no longer delivers, because every worker that leased them died, including the
// spare deliveries. It scans the work stream at intervals. An item that the server may have forgotten is published
// again once. For each other item it publishes the result event of cfg.Outcome and deletes the message; after
// a crash in between it completes these steps. Sweep runs until ctx ends and then returns nil. Only the leading coordinator runs it.
func Sweep(ctx context.Context, nc *nats.Conn, cfg SweepConfig) error {
	if cfg.Outcome == nil {
		return fmt.Errorf("sweep: %w: Outcome is missing", ErrConfig)
	}
	cfg.Interval = cmp.Or(cfg.Interval, 10*time.Second)
	l, err := newLink(nc, cfg.Logger, defaultTimeout)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{link: l, cfg: cfg}
	for retry.Sleep(ctx, cfg.Interval) == nil {
		err := s.scan(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, ErrClosed), errors.Is(err, ErrAccess):
			return fmt.Errorf("sweep: %w", err)
		default:
			s.logger.Warn("sweeping was interrupted, will resume", "reason", err)
		}
	}
	return nil
}

// scan looks for items of campaigns without deliverable items: the server no longer delivers them. It acts when two scans have
// found an item, because one scan may fall between an acknowledgement and the removal of the item. A killed server forgets
// deliveries and acknowledgements: so the item is published again as one that has used its attempts, and is swept when a scan
// finds it so.
func (s *sweeper) scan(ctx context.Context) error {
	var stream jetstream.Stream
	err := s.withRetry(ctx, "", func(ctx context.Context) (err error) {
		stream, err = s.js.Stream(ctx, workStream)
		return err
	})
	if err != nil {
		return err
	}
	var empty []*jetstream.ConsumerInfo
	list := stream.ListConsumers(ctx)
	for info := range list.Info() { // to its end: otherwise a goroutine of the library would remain
		if strings.HasPrefix(info.Name, durablePrefix) && info.NumPending == 0 && info.NumAckPending == 0 {
			empty = append(empty, info)
		}
	}
	if err := list.Err(); err != nil {
		return serverError(err)
	}
	found := map[uint64]bool{}
	for _, info := range empty {
		for next := uint64(1); ; {
			msg, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(info.Config.FilterSubject))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				break
			}
			if err != nil {
				return serverError(err)
			}
			if msg.Sequence > info.Delivered.Stream {
				break // it was published since
			}
			next = msg.Sequence + 1
			if !s.suspects[msg.Sequence] {
				found[msg.Sequence] = true
				continue
			}
			if intHeader(msg.Header, headerAttempts) < info.Config.MaxDeliver {
				err = s.publishAgain(ctx, stream, msg, info.Config.MaxDeliver)
			} else {
				err = s.sweep(ctx, stream, msg)
			}
			if err != nil {
				s.logger.Warn("could not sweep item, will retry", "sequence", msg.Sequence, "reason", err)
				found[msg.Sequence] = true
			}
		}
	}
	s.suspects = found
	return nil
}

// publishAgain replaces a message by a copy that has used the deliveries.
func (s *sweeper) publishAgain(ctx context.Context, stream jetstream.Stream, msg *jetstream.RawStreamMsg, deliveries int) error {
	header := maps.Clone(msg.Header)
	i := identityOf(strings.Split(msg.Subject, ".")[2], header)
	header[headerAttempts] = []string{strconv.Itoa(deliveries)}
	header[jetstream.MsgIDHeader] = []string{i.messageID() + "/again"}
	if err := s.store(ctx, workStream, &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}); err != nil {
		return fmt.Errorf("publish item %s again: %w", i.id, err)
	}
	s.logger.Warn("published an item again that the server no longer delivers", "campaign", i.campaign, "id", i.id)
	return stream.DeleteMsg(ctx, msg.Sequence)
}

// sweep publishes the outcome of the item of a message, and deletes the message.
func (s *sweeper) sweep(ctx context.Context, stream jetstream.Stream, msg *jetstream.RawStreamMsg) error {
	i := identityOf(strings.Split(msg.Subject, ".")[2], msg.Header)
	payload, err := s.cfg.Outcome()
	if err != nil {
		return fmt.Errorf("outcome of item %s: %w", i.id, err)
	}
	outcome, err := i.message(ctx, resultSubject+"."+i.campaign, payload)
	if err != nil {
		return err
	}
	if err := s.store(ctx, resultStream, outcome); err != nil {
		return fmt.Errorf("publish result %s: %w", i.id, err)
	}
	s.logger.Warn("item swept", "campaign", i.campaign, "id", i.id, "attempts", intHeader(msg.Header, headerAttempts))
	return stream.DeleteMsg(ctx, msg.Sequence)
}
