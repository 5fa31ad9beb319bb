package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/internal/retry"
)

// SweepConfig configures Sweep.
type SweepConfig struct {
	// Outcome returns the payload of an item's result event. After an error the item stays and is retried. Required.
	Outcome func(campaign string, d DeadLetter) (payload []byte, err error)
	// Interval is the time between two scans. Default 10 s.
	Interval time.Duration
	// Logger receives every swept item. Default: no log.
	Logger *slog.Logger
	// Tracer receives the spans. Default: no spans.
	Tracer trace.Tracer
	// Now is the clock of the dead letters. Default time.Now.
	Now func() time.Time
}

// withDefaults returns c with every zero field set to its default, but for the logger.
func (c SweepConfig) withDefaults() SweepConfig {
	c.Interval = cmp.Or(c.Interval, 10*time.Second)
	c.Tracer = cmp.Or(c.Tracer, noop.NewTracerProvider().Tracer(""))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// sweeper buries the items that the server no longer delivers.
type sweeper struct {
	*link
	cfg SweepConfig
	// suspects are the sequence numbers of undeliverable messages at the last scan.
	suspects map[uint64]bool
}

// Sweep buries the items that the server no longer delivers, because every worker that leased them died, including the
// spare deliveries for burying. It scans the work stream at intervals, and finds them once no other item of their
// campaign waits or is leased. For each item it publishes the result event of cfg.Outcome, stores a dead letter and
// deletes the message; after a crash in between it completes these steps. Sweep runs until ctx ends and then returns
// nil. Only the leading coordinator runs it.
func Sweep(ctx context.Context, nc *nats.Conn, cfg SweepConfig) error {
	if cfg.Outcome == nil {
		return fmt.Errorf("sweep: %w: Outcome is missing", ErrConfig)
	}
	cfg = cfg.withDefaults()
	l, err := newLink(nc, cfg.Logger, defaultTimeout)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{link: l, cfg: cfg}
	for retry.Sleep(ctx, cfg.Interval) == nil {
		err := s.scan(ctx)
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrAccess) {
			return fmt.Errorf("sweep: %w", err)
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("sweeping was interrupted, will resume", "reason", err)
		}
	}
	return nil
}

// scan sweeps the items of campaigns without deliverable items: the server no longer delivers the remaining items. An
// item is swept when two scans have found it, because one scan may fall between an acknowledgement and the removal of
// the item.
func (s *sweeper) scan(ctx context.Context) error {
	var stream jetstream.Stream
	err := s.withRetry(ctx, "", func(ctx context.Context) (err error) {
		stream, err = s.js.Stream(ctx, workStream)
		return err
	})
	if err != nil {
		return err
	}
	found := map[uint64]bool{}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if !strings.HasPrefix(info.Name, durablePrefix) || info.NumPending > 0 || info.NumAckPending > 0 {
			continue
		}
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
			if err := s.sweep(ctx, stream, msg, info.Config.MaxDeliver); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				s.logger.Warn("could not sweep item, will retry", "sequence", msg.Sequence, "reason", err)
				found[msg.Sequence] = true
			}
		}
	}
	s.suspects = found
	return serverError(list.Err())
}

// sweep buries the item of a message.
func (s *sweeper) sweep(ctx context.Context, stream jetstream.Stream, msg *jetstream.RawStreamMsg, deliveries int) error {
	parts := strings.Split(msg.Subject, ".")
	campaign, err := campaignOf(msg.Subject)
	if err != nil {
		return err
	}
	i := identityOf(parts[2], msg.Header)
	ctx, span := s.cfg.Tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier{msg.Header}), "sweep "+workSubject,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attributeSystem.String("nats"), attributeSubject.String(workSubject),
			attributeGroup.String(campaign), attributeID.String(i.id)))
	err = s.giveUp(ctx, i, campaign, DeadLetter{
		Dead: Dead{
			ID: i.id, Attempts: intHeader(msg.Header, headerAttempts) + deliveries, TraceID: traceID(ctx),
			Reason: "every worker that leased the item crashed or hung",
		},
		Round: i.round, Class: parts[len(parts)-1], Payload: msg.Data, Buried: s.cfg.Now().UTC(),
	})
	if err == nil {
		if err = stream.DeleteMsg(ctx, msg.Sequence); errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
	}
	endSpan(span, err)
	return err
}

func (s *sweeper) giveUp(ctx context.Context, i identity, campaign string, letter DeadLetter) error {
	payload, err := s.cfg.Outcome(campaign, letter)
	if err != nil {
		return fmt.Errorf("outcome of item %s: %w", i.id, err)
	}
	msg, err := i.message(ctx, resultSubject+"."+i.campaign, payload)
	if err != nil {
		return err
	}
	if err := s.store(ctx, resultStream, msg); err != nil {
		return fmt.Errorf("publish result %s: %w", i.id, err)
	}
	if err := s.bury(ctx, i, letter); err != nil {
		return fmt.Errorf("store dead letter %s: %w", i.id, err)
	}
	s.logger.Warn("item swept", "campaign", campaign, "id", i.id, "attempts", letter.Attempts)
	return nil
}

func traceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}
