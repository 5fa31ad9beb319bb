package queue

import (
	"context"
	"encoding/json"
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

// SweepConfig describes the sweeping of items that ended all of their workers.
type SweepConfig struct {
	// Outcome gives the payload of the result event of an item. An error keeps the item; it
	// is tried again. It must be set.
	Outcome func(campaign string, d DeadLetter) (payload []byte, err error)
	// Every is how often to look for items of which the server's word was lost. Default 30 s.
	Every time.Duration
	// Logger is told of every item. Default: nothing is logged.
	Logger *slog.Logger
	// Tracer takes the spans. Default: none are made.
	Tracer trace.Tracer
	// Now is the clock of the dead letters. Default time.Now.
	Now func() time.Time
}

const (
	sweepConsumer = "ddiff-sweep"
	// sweepBatch and sweepWait are how many advisories are taken at a time, and how long to
	// wait for them.
	sweepBatch = 16
	sweepWait  = 2 * time.Second
	// sweepRetry is the pause before an item that could not be swept is tried again.
	sweepRetry = 10 * time.Second
)

// sweeper buries what the server does not hand out any more.
type sweeper struct {
	*link
	cfg SweepConfig
	// suspects are the numbers of messages that nobody was to get at the last look.
	suspects map[uint64]bool
	looked   time.Time
}

// Sweep buries the items that the server has given up handing out, because every worker that
// had one ended without an answer, also those that were only to bury it. It works off the
// server's advisories, which the stream DDIFF_ADVISORY keeps, and from time to time looks
// itself, for an advisory can be lost with a server. For each item it publishes the result
// event of cfg.Outcome, stores a dead letter and deletes the message; after a crash in between
// it goes on. It runs until ctx ends, and then returns nil; the leading coordinator runs it.
func Sweep(ctx context.Context, nc *nats.Conn, cfg SweepConfig) error {
	if cfg.Outcome == nil {
		return fmt.Errorf("sweep: %w: Outcome is missing", ErrConfig)
	}
	if cfg.Every == 0 {
		cfg.Every = 30 * time.Second
	}
	if cfg.Tracer == nil {
		cfg.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l, err := newLink(nc, cfg.Logger, defaultPatience)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{link: l, cfg: cfg, looked: time.Now()}
	for ctx.Err() == nil {
		err := s.round(ctx)
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrAccess) {
			return fmt.Errorf("sweep: %w", err)
		}
		if ctx.Err() == nil {
			s.logger.Warn("sweeping goes on after an interruption", "reason", err)
			_ = retry.Sleep(ctx, longestPause) // the loop looks at ctx
		}
	}
	return nil
}

// round works off the advisories as they come, and looks itself from time to time, until it
// cannot go on.
func (s *sweeper) round(ctx context.Context) error {
	var consumer jetstream.Consumer
	err := s.persist(ctx, "", func(ctx context.Context) (err error) {
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
		batch, err := consumer.Fetch(sweepBatch, jetstream.FetchContext(pull{ctx, time.Now().Add(sweepWait)}))
		if err != nil {
			return serverError(err)
		}
		for msg := range batch.Messages() {
			if err := s.advised(ctx, msg); err != nil {
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
		if time.Since(s.looked) >= s.cfg.Every {
			if err := s.look(ctx); err != nil {
				return err
			}
			s.looked = time.Now()
		}
	}
}

// advisory is what the server says when it gives a message up.
type advisory struct {
	Consumer string    `json:"consumer"`
	Seq      uint64    `json:"stream_seq"`
	Time     time.Time `json:"timestamp"`
}

// advised works off one advisory.
func (s *sweeper) advised(ctx context.Context, msg jetstream.Msg) error {
	var a advisory
	if err := json.Unmarshal(msg.Data(), &a); err != nil {
		s.logger.Error("advisory cannot be read", "reason", err)
		return msg.Term()
	}
	err := s.persist(ctx, "", func(ctx context.Context) error {
		consumer, err := s.js.Consumer(ctx, workStream, a.Consumer)
		if gone(err) {
			return nil // the campaign was dropped
		}
		if err != nil {
			return err
		}
		info := consumer.CachedInfo()
		if info.Created.After(a.Time) {
			return nil // the item is handed out anew
		}
		return s.sweep(ctx, a.Seq, info.Config.MaxDeliver)
	})
	if err != nil {
		s.logger.Warn("item cannot be swept yet", "number", a.Seq, "reason", err)
		return msg.NakWithDelay(sweepRetry)
	}
	return msg.DoubleAck(ctx)
}

// look sweeps the items of campaigns that have nothing left to hand out: what is still there
// was given up. An item is swept when two looks have found it, since one may fall between an
// acknowledgement and the end of the item.
func (s *sweeper) look(ctx context.Context) error {
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
		for next := uint64(1); next <= info.Delivered.Stream; {
			msg, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(info.Config.FilterSubject))
			if errors.Is(err, jetstream.ErrMsgNotFound) || (err == nil && msg.Sequence > info.Delivered.Stream) {
				break
			}
			if err != nil {
				return serverError(err)
			}
			next = msg.Sequence + 1
			if !s.suspects[msg.Sequence] {
				found[msg.Sequence] = true
				continue
			}
			if err := s.sweep(ctx, msg.Sequence, info.Config.MaxDeliver); err != nil {
				return err
			}
		}
	}
	s.suspects = found
	return serverError(list.Err())
}

// sweep buries the message with a number, if it is still there.
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
	header := carrier(msg.Header)
	ctx, span := s.cfg.Tracer.Start(propagation.TraceContext{}.Extract(ctx, header), "sweep "+workSubject,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attributeSystem.String("nats"), attributeSubject.String(workSubject),
			attributeGroup.String(campaign), attributeID.String(i.id)))
	err = s.give(ctx, i, campaign, DeadLetter{
		Dead: Dead{
			ID: i.id, Attempts: number(header, headerAttempts) + deliveries, TraceID: traceID(ctx),
			Reason: "every worker that had it ended without an answer: they crashed or hung",
		},
		Round: i.round, Class: parts[len(parts)-1], Payload: msg.Data, Buried: s.cfg.Now().UTC(),
	})
	if err == nil {
		if err = stream.DeleteMsg(ctx, seq); errors.Is(err, jetstream.ErrMsgNotFound) {
			err = nil
		}
	}
	end(span, err)
	return err
}

// give stores the result event and the dead letter.
func (s *sweeper) give(ctx context.Context, i identity, campaign string, letter DeadLetter) error {
	payload, err := s.cfg.Outcome(campaign, letter)
	if err != nil {
		return fmt.Errorf("make the outcome of item %s: %w", i.id, err)
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

// traceID is the trace of a context in hex, or "".
func traceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}
