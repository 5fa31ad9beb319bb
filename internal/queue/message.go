package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
)

// Headers of a message, besides the trace context.
const (
	headerID       = "Ddiff-Id"
	headerEpoch    = "Ddiff-Epoch"
	headerRound    = "Ddiff-Round"
	headerAttempts = "Ddiff-Attempts" // before the release
	headerReleases = "Ddiff-Releases" // number of releases
)

// identity identifies the publication of an item: one item in one round of one epoch.
type identity struct {
	campaign string // as a token
	epoch    int64
	round    int
	id       string
}

// identity returns the identity of an item in the newest epoch.
func (q *Queue) identity(id string, round int) identity {
	return identity{campaign: q.campaign, epoch: q.epoch.Load(), round: round, id: id}
}

// messageID returns the id by which the server detects duplicates. All campaigns share a stream's ids, so the id
// includes the campaign.
func (i identity) messageID() string {
	return i.campaign + "/" + formatEpoch(i.epoch) + "/" + strconv.Itoa(i.round) + "/" + i.id
}

func identityOf(campaign string, h nats.Header) identity {
	i := identity{campaign: campaign, id: h.Get(headerID), round: intHeader(h, headerRound)}
	if epoch, err := parseEpoch(h.Get(headerEpoch)); err == nil {
		i.epoch = epoch
	}
	return i
}

// maxCount limits the counts in headers: a forged one must not overflow, or make a loop endless.
const maxCount = 1 << 20

// intHeader returns the count in a header, 0..maxCount, or 0 when it is missing.
func intHeader(h nats.Header, key string) int {
	n, err := strconv.Atoi(h.Get(key))
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxCount)
}

// message returns a message with the headers for identity and trace context.
func (i identity) message(ctx context.Context, subject string, payload []byte) (*nats.Msg, error) {
	if err := checkID(i.id); err != nil {
		return nil, err
	}
	if i.round < 0 {
		return nil, fmt.Errorf("%w: round %d is negative", ErrConfig, i.round)
	}
	header := nats.Header{
		jetstream.MsgIDHeader: {i.messageID()},
		headerID:              {i.id},
		headerEpoch:           {formatEpoch(i.epoch)},
	}
	if i.round > 0 {
		header[headerRound] = []string{strconv.Itoa(i.round)}
	}
	propagation.TraceContext{}.Inject(ctx, carrier{header})
	return &nats.Msg{Subject: subject, Header: header, Data: payload}, nil
}

// store publishes one message to a stream and returns when the server has it.
func (l *link) store(ctx context.Context, stream string, msg *nats.Msg) error {
	_, err := l.storeNew(ctx, stream, msg)
	return err
}

// storeNew is store, and reports whether the stream had no message of this id. The server compares ids only, and every worker
// may publish under any id: the message of this id may be another one, published to suppress this one. So a message whose
// id is there is stored under an id that nobody can predict; readers ignore what they have read.
func (l *link) storeNew(ctx context.Context, stream string, msg *nats.Msg) (isNew bool, err error) {
	if isNew, err = l.storeOnce(ctx, stream, msg); err != nil || isNew {
		return isNew, err
	}
	msg.Header.Set(jetstream.MsgIDHeader, msg.Header.Get(jetstream.MsgIDHeader)+"/"+rand.Text())
	_, err = l.storeOnce(ctx, stream, msg)
	return false, err
}

// storeOnce stores no message whose id is there, and then returns false. A message of this call whose answer was lost counts
// as new.
func (l *link) storeOnce(ctx context.Context, stream string, msg *nats.Msg) (isNew bool, err error) {
	attempts := 0
	err = l.withRetry(ctx, stream, func(ctx context.Context) error {
		attempts++
		ack, err := l.js.PublishMsg(ctx, msg)
		if err == nil {
			isNew = !ack.Duplicate || attempts > 1
		}
		return err
	})
	return isNew, err
}

// Headers of a released item, see Marks.
const (
	headerFaults   = "Ddiff-Faults"
	headerDisputed = "Ddiff-Disputed" // tokens of names, separated by commas
	headerPasses   = "Ddiff-Passes"
)

// Marks travel with a released item to its next worker. Programs that do not know them copy them unchanged.
type Marks struct {
	// Faults counts the releases after a failure of a worker's environment, such as an unavailable store.
	Faults int
	// Disputed names the workers that could not restore the item for a reason that may be their own.
	Disputed []string
	// Passes counts the releases by workers in Disputed that left the item to another worker.
	Passes int
}

// Marks returns the marks of the item.
func (l *Lease) Marks() Marks {
	h := l.msg.Headers()
	m := Marks{Faults: intHeader(h, headerFaults), Passes: intHeader(h, headerPasses)}
	for token := range strings.SplitSeq(h.Get(headerDisputed), ",") {
		if name, err := untoken(token); err == nil && name != "" {
			m.Disputed = append(m.Disputed, name)
		}
	}
	return m
}

// MaxAttempts returns the number of attempts of the campaign.
func (l *Lease) MaxAttempts() int { return l.q.cfg.MaxAttempts }

func (m Marks) write(header nats.Header) {
	var tokens []string
	for _, name := range m.Disputed {
		tokens = append(tokens, Token(name))
	}
	slices.Sort(tokens)
	set := func(key, value string, present bool) {
		delete(header, key)
		if present {
			header[key] = []string{value}
		}
	}
	set(headerFaults, strconv.Itoa(m.Faults), m.Faults > 0)
	set(headerDisputed, strings.Join(slices.Compact(tokens), ","), len(tokens) > 0)
	set(headerPasses, strconv.Itoa(m.Passes), m.Passes > 0)
}

// carrier lets a propagator read and write the headers of a message. Unlike the carrier for HTTP it preserves the case
// of a key: "traceparent" stays in lower case, as NATS tools expect.
type carrier struct{ nats.Header }

var _ propagation.TextMapCarrier = carrier{}

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return slices.Collect(maps.Keys(c.Header)) }
