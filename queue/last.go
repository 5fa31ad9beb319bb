package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lastReads is the number of requests that wait for their answers at a time.
const lastReads = 64

// lastMessages returns the last message of each subject of the board that has one. The client sends many requests before it reads the answers, on one
// subscription: a board has thousands of records, and a call of the library for each costs goroutines and timers besides.
func (w *watcher) lastMessages(ctx context.Context, subjects []string) (found []*jetstream.RawStreamMsg, err error) {
	for window := range slices.Chunk(slices.Clone(subjects), lastReads) {
		err := w.withRetry(ctx, boardStream, func(ctx context.Context) error {
			inbox := w.nc.NewInbox() + "."
			answers, err := w.nc.SubscribeSync(inbox + "*")
			if err != nil {
				return err
			}
			defer answers.Unsubscribe() //nolint:errcheck // it fails only on a closed connection
			sent := 0
			for i, subject := range window {
				if subject == "" {
					continue // answered in an earlier attempt
				}
				request, err := json.Marshal(map[string]string{"last_by_subj": subject})
				if err == nil {
					err = w.nc.PublishRequest("$JS.API.STREAM.MSG.GET."+boardStream, inbox+strconv.Itoa(i), request)
				}
				if err != nil {
					return err
				}
				sent++
			}
			for range sent {
				answer, err := answers.NextMsgWithContext(ctx)
				if err != nil {
					return err
				}
				i, err := strconv.Atoi(strings.TrimPrefix(answer.Subject, inbox))
				if err != nil || i < 0 || i >= len(window) {
					return fmt.Errorf("an answer to no request: %q", answer.Subject)
				}
				msg, err := lastOf(answer)
				if err != nil {
					return err
				}
				if window[i] = ""; msg != nil {
					found = append(found, msg)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// lastOf reads the answer to a request for the last message of a subject; nil means that there is none.
func lastOf(answer *nats.Msg) (*jetstream.RawStreamMsg, error) {
	if len(answer.Data) == 0 {
		return nil, nats.ErrNoResponders
	}
	var read struct {
		Error   *jetstream.APIError
		Message *struct {
			Subject    string
			Seq        uint64
			Hdrs, Data []byte
			Time       time.Time
		}
	}
	if err := json.Unmarshal(answer.Data, &read); err != nil {
		return nil, fmt.Errorf("read the answer of the server: %w", err)
	}
	switch m := read.Message; {
	case read.Error != nil && read.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	case read.Error != nil:
		return nil, read.Error
	case m == nil:
		return nil, jetstream.ErrInvalidJetStreamResponse
	default:
		msg := &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Seq, Data: m.Data, Time: m.Time}
		var err error
		if len(m.Hdrs) > 0 {
			msg.Header, err = nats.DecodeHeadersMsg(m.Hdrs)
		}
		return msg, err
	}
}
