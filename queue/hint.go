package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"
)

const hintSubject = "ddiff.hint"

// Hints announces to all workers that a campaign has work which they may not know of. Hints are messages without
// storage: a hint may be lost, and workers check all campaigns from time to time. All methods may be called concurrently.
type Hints struct{ nc *nats.Conn }

// NewHints returns the hints of a cluster. It sends no request.
func NewHints(nc *nats.Conn) *Hints { return &Hints{nc} }

// Publish announces work of a campaign.
func (h *Hints) Publish(campaign string) error {
	campaign, err := token("Campaign", campaign)
	if err == nil {
		err = h.nc.Publish(hintSubject+"."+campaign, nil)
	}
	return wrap(serverError(err), "publish hint")
}

// Watch yields the campaigns of hints, also of hints from this process, until ctx ends, which is not an error. Any other
// error is yielded as the last pair. Without permission for the subject it yields nothing.
func (h *Hints) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := h.watch(ctx, yield)
		if err != nil && ctx.Err() == nil {
			yield("", fmt.Errorf("watch hints: %w", serverError(err)))
		}
	}
}

func (h *Hints) watch(ctx context.Context, yield func(string, error) bool) error {
	sub, err := h.nc.SubscribeSync(hintSubject + ".*")
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // it fails only on a closed connection
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrSlowConsumer) {
			continue // hints were dropped
		}
		if err != nil {
			return err
		}
		campaign, err := campaignOf(msg.Subject)
		if err == nil && !yield(campaign, nil) {
			return nil
		}
	}
}

// hintDenied reports whether an error is the refusal of hints or of notices of the board. They are optional, and an older
// configuration of the servers does not permit them.
func hintDenied(err error) bool {
	return strings.Contains(err.Error(), hintSubject) || strings.Contains(err.Error(), noticeSubject)
}
