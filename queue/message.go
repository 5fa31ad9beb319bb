package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
)

// The headers of a message, besides the trace context.
const (
	headerID       = "Ddiff-Id"
	headerEpoch    = "Ddiff-Epoch"
	headerRound    = "Ddiff-Round"
	headerAttempts = "Ddiff-Attempts" // made before the item was released
	headerReleases = "Ddiff-Releases" // how often it was
)

// identity is what a message belongs to: an item as it was published once.
type identity struct {
	campaign string // as a token
	epoch    int64
	round    int
	id       string
}

// messageID is the id by which the server recognises a message. A stream's ids are shared by
// all campaigns, so the campaign is part of it.
func (i identity) messageID() string {
	return i.campaign + "/" + formatEpoch(i.epoch) + "/" + strconv.Itoa(i.round) + "/" + i.id
}

// identityOf reads the identity of a message on a subject of this package.
func identityOf(campaign string, header nats.Header) identity {
	h := carrier(header)
	i := identity{campaign: campaign, id: h.Get(headerID), round: number(h, headerRound)}
	if epoch, err := parseEpoch(h.Get(headerEpoch)); err == nil {
		i.epoch = epoch
	}
	return i
}

// number is the value of a header, 0 when there is none.
func number(h carrier, key string) int {
	n, err := strconv.Atoi(h.Get(key))
	if err != nil {
		return 0
	}
	return n
}

// message builds a message with the headers that all have: identity and trace context.
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
	propagation.TraceContext{}.Inject(ctx, carrier(header))
	return &nats.Msg{Subject: subject, Header: header, Data: payload}, nil
}

// store publishes one message to a stream and returns when the server has it. A message that is already there is no
// error.
func (l *link) store(ctx context.Context, stream string, msg *nats.Msg) error {
	return l.persist(ctx, stream, func(ctx context.Context) error {
		_, err := l.js.PublishMsg(ctx, msg)
		return err
	})
}
