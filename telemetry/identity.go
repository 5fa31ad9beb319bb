package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// CampaignSpan returns the context of the root span of a campaign's trace. It follows from the campaign's id and the time of
// its submission: all coordinators that lead one after the other write to one trace, and need no record of it.
func CampaignSpan(campaign string, created time.Time) trace.SpanContext {
	sum := sha256.Sum256([]byte("ddiff campaign " + campaign + " " + strconv.FormatInt(created.UnixMilli(), 10)))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// ContextWithIdentity returns a context in which the next new root span has the ids of c.
func ContextWithIdentity(ctx context.Context, c trace.SpanContext) context.Context {
	return context.WithValue(ctx, identityKey{}, c)
}

type identityKey struct{}

// identities generates random ids, and those of ContextWithIdentity.
type identities struct{}

// NewIDs implements sdktrace.IDGenerator.
func (identities) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(identityKey{}).(trace.SpanContext); ok {
		return c.TraceID(), c.SpanID()
	}
	var t trace.TraceID
	for !t.IsValid() {
		_, _ = rand.Read(t[:]) // never fails
	}
	return t, newSpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (identities) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

func newSpanID() (s trace.SpanID) {
	for !s.IsValid() {
		_, _ = rand.Read(s[:]) // never fails
	}
	return s
}
