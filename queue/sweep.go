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
	// Interval is the time between two scans. Default 10 s.
	Interval time.Duration
	// Logger receives every swept item. Default: no log.
	Logger *slog.Logger
}

// sweeper publishes the items again that the server no longer delivers.
type sweeper struct {
	*link
	// suspects are the sequence numbers of undeliverable messages at the last scan.
	suspects map[uint64]bool
}

// Sweep publishes the items again that the server no longer delivers, because it has forgotten them, or because every worker that leased them
// died, including the spare deliveries for burying. They have used the attempts of the server's deliveries, so that the next worker buries them
// unless another attempt is due. Sweep scans the work stream at intervals until ctx ends, and then returns nil. Only the leading coordinator runs it.
func Sweep(ctx context.Context, nc *nats.Conn, cfg SweepConfig) error {
	l, err := newLink(nc, cfg.Logger, defaultTimeout)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{link: l}
	for retry.Sleep(ctx, cmp.Or(cfg.Interval, 10*time.Second)) == nil {
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
// found an item, because one scan may fall between an acknowledgement and the removal of the item.
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
			if err := s.publishAgain(ctx, stream, msg, info.Config.MaxDeliver); err != nil {
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
	attempts := strconv.Itoa(intHeader(header, headerAttempts) + deliveries)
	header[headerAttempts] = []string{attempts}
	header[jetstream.MsgIDHeader] = []string{i.messageID() + "/again-" + attempts}
	if err := s.store(ctx, workStream, &nats.Msg{Subject: msg.Subject, Header: header, Data: msg.Data}); err != nil {
		return fmt.Errorf("publish item %s again: %w", i.id, err)
	}
	s.logger.Warn("published an item again that the server no longer delivers", "campaign", i.campaign, "id", i.id)
	if err := stream.DeleteMsg(ctx, msg.Sequence); !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	return nil
}
