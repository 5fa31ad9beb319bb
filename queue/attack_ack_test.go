package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestAttackAcknowledgements forges acknowledgements of an advisory that the coordinator has fetched.
func TestAttackAcknowledgements(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	consumer, err := a.auditor.CreateOrUpdateConsumer(t.Context(), "DDIFF_ADVISORY", jetstream.ConsumerConfig{
		Durable: "ddiff-sweep", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
	})
	must(t, err)
	must(t, a.auditor.Conn().Publish("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.DDIFF_WORK.ddiff-1", []byte("{}")))
	msg, err := consumer.Next(jetstream.FetchMaxWait(patience))
	must(t, err)
	own := strings.Split(msg.Reply(), ".") // $JS.ACK.DDIFF_ADVISORY.ddiff-sweep.1.SEQUENCE.1.TIME.0
	if len(own) != 9 {
		t.Fatalf("the subject of an acknowledgement is %s", msg.Reply())
	}
	numbers := own[4:]
	var forged []string
	for _, first := range []string{"DDIFF_WORK", numbers[0]} {
		of := strings.Join(append([]string{first}, numbers[1:]...), ".")
		forged = append(forged, "$JS.ACK.DDIFF_ADVISORY.ddiff-sweep."+of, "$JS.ACK.DDIFF_WORK.ddiff-sweep."+of,
			"$JS.ACK._.x.DDIFF_ADVISORY.ddiff-sweep."+of, "$JS.ACK.DDIFF_WORK.x.DDIFF_ADVISORY.ddiff-sweep."+of,
			"$JS.ACK._.x.DDIFF_WORK.ddiff-sweep."+of+".r")
	}
	for role := range ownSubjects {
		nc := connect(t, a.server, role)
		for _, subject := range forged {
			for _, body := range []string{"+TERM", "+ACK"} {
				must(t, nc.PublishRequest(subject, nc.NewInbox(), []byte(body)))
			}
		}
		must(t, nc.FlushTimeout(patience))
		_, err = a.auditor.Conn().Request(msg.Reply(), []byte("+WPI"), patience) // answered after the acknowledgements before it
		must(t, err)
		info, err := consumer.Info(t.Context())
		must(t, err)
		if info.NumAckPending != 1 {
			t.Errorf("a %s acknowledged an advisory: %d are pending, want 1", role, info.NumAckPending)
		}
	}
	must(t, msg.DoubleAck(t.Context()))
}
