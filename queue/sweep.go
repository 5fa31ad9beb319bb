package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
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
	// Interval is the time between scans for items whose advisory was lost. Default 30 s.
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
	c.Interval = cmp.Or(c.Interval, 30*time.Second)
	c.Tracer = cmp.Or(c.Tracer, noop.NewTracerProvider().Tracer(""))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

const (
	sweepConsumer = "ddiff-sweep"
	// sweepBatch and sweepWait are the number of advisories per request and the wait for them.
	sweepBatch = 16
	sweepWait  = 2 * time.Second
	// sweepRetry is the delay before another attempt to sweep an item.
	sweepRetry = 10 * time.Second
)

// sweeper buries the items that the server no longer delivers.
type sweeper struct {
	*link
	cfg SweepConfig
	// suspects are the sequence numbers of undeliverable messages at the last scan.
	suspects map[uint64]bool
	nextScan time.Time
}

// Sweep buries the items that the server no longer delivers, because every worker that leased them died, including the
// spare deliveries for burying. It processes the server's advisories from the stream DDIFF_ADVISORY, and scans the work
// stream at intervals, because a killed server loses advisories and deliveries: such an item is published again once. For each item it publishes the result event of
// cfg.Outcome, stores a dead letter and deletes the message; after a crash in between it completes these steps. Sweep
// runs until ctx ends and then returns nil. Only the leading coordinator runs it.
func Sweep(ctx context.Context, nc *nats.Conn, cfg SweepConfig) error {
	if cfg.Outcome == nil {
		return fmt.Errorf("sweep: %w: Outcome is missing", ErrConfig)
	}
	cfg = cfg.withDefaults()
	l, err := newLink(nc, cfg.Logger, defaultTimeout)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{link: l, cfg: cfg, nextScan: time.Now().Add(cfg.Interval)}
	for ctx.Err() == nil {
		err := s.run(ctx)
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrAccess) {
			return fmt.Errorf("sweep: %w", err)
		}
		if ctx.Err() == nil {
			s.logger.Warn("sweeping was interrupted, will resume", "reason", err)
			_ = retry.Sleep(ctx, longestPause) // the loop checks ctx
		}
	}
	return nil
}

// run processes advisories as they arrive, and scans at intervals, until an error ends it.
func (s *sweeper) run(ctx context.Context) error {
	var consumer jetstream.Consumer
	err := s.withRetry(ctx, "", func(ctx context.Context) (err error) {
		consumer, err = s.js.CreateOrUpdateConsumer(ctx, advisoryStream, jetstream.ConsumerConfig{
			Durable: sweepConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
		})
		return err
	})
	if err != nil {
		return err
	}
	for {
		if !s.connected(ctx, sweepWait) {
			return ErrUnavailable
		}
		batch, err := consumer.Fetch(sweepBatch, jetstream.FetchContext(hintedContext{ctx, time.Now().Add(sweepWait)}))
		if err != nil {
			return serverError(err)
		}
		for msg := range batch.Messages() {
			if err := s.handleAdvisory(ctx, msg); err != nil {
				return err
			}
		}
		switch err := fetchError(batch.Error()); {
		case ctx.Err() != nil:
			return ctx.Err()
		case s.nc.IsClosed():
			return ErrClosed
		case err != nil:
			return err
		}
		if time.Now().After(s.nextScan) {
			if err := s.scan(ctx); err != nil {
				return err
			}
			s.nextScan = time.Now().Add(s.cfg.Interval)
		}
	}
}

// advisory is the server's message about a message that it no longer delivers.
type advisory struct {
	Consumer string    `json:"consumer"`
	Seq      uint64    `json:"stream_seq"`
	Time     time.Time `json:"timestamp"`
}

func (s *sweeper) handleAdvisory(ctx context.Context, msg jetstream.Msg) error {
	var a advisory
	if err := json.Unmarshal(msg.Data(), &a); err != nil {
		s.logger.Error("unreadable advisory", "reason", err)
		return msg.Term()
	}
	err := s.withRetry(ctx, "", func(ctx context.Context) error {
		consumer, err := s.js.Consumer(ctx, workStream, a.Consumer)
		if notFound(err) {
			return nil // the campaign was dropped
		}
		if err != nil {
			return err
		}
		info := consumer.CachedInfo()
		if info.Created.After(a.Time) {
			return nil // the new consumer delivers the item
		}
		return s.sweep(ctx, a.Seq, info.Config.MaxDeliver)
	})
	if err != nil {
		s.logger.Warn("could not sweep item, will retry", "sequence", a.Seq, "reason", err)
		return msg.NakWithDelay(sweepRetry)
	}
	return msg.DoubleAck(ctx)
}

// scan looks for items of campaigns without deliverable items: the server no longer delivers them. It acts when two scans have
// found an item, because one scan may fall between an acknowledgement and the removal of the item. No advisory says that
// the deliveries are used, and a killed server forgets deliveries and acknowledgements: so the item is published again as
// one that has used its attempts, and is swept when a scan finds it so.
func (s *sweeper) scan(ctx context.Context) error {
	stream, err := s.js.Stream(ctx, workStream)
	if err != nil {
		return serverError(err)
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
			if intHeader(msg.Header, headerAttempts) < info.Config.MaxDeliver {
				err = s.publishAgain(ctx, stream, msg, info.Config.MaxDeliver)
			} else {
				err = s.sweep(ctx, msg.Sequence, info.Config.MaxDeliver)
			}
			if err != nil {
				return err
			}
		}
	}
	s.suspects = found
	return serverError(list.Err())
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
	return remove(ctx, stream, msg.Sequence)
}

// remove deletes a message if it still exists.
func remove(ctx context.Context, stream jetstream.Stream, seq uint64) error {
	if err := stream.DeleteMsg(ctx, seq); !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	return nil
}

// sweep buries the message with a sequence number if it still exists.
func (s *sweeper) sweep(ctx context.Context, seq uint64, deliveries int) error {
	stream, err := s.js.Stream(ctx, workStream)
	if err != nil {
		return err
	}
	msg, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
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
		err = remove(ctx, stream, seq)
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
