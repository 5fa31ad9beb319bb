package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/lifecycle"
	"ddiff/internal/retry"
)

const (
	// defaultTimeout limits the retries of a call. A replicated stream elects a new leader within about ten seconds.
	defaultTimeout = 30 * time.Second
	// attemptTimeout limits one attempt: a request that was lost with a server is sent again.
	attemptTimeout = 5 * time.Second
	// The delay between two attempts grows from firstPause to longestPause.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// link is a connection that retries requests through short outages of a server.
type link struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	logger *slog.Logger
	// timeout limits the retries of a request. 0: no limit; each retry is logged.
	timeout time.Duration
}

func newLink(nc *nats.Conn, logger *slog.Logger, timeout time.Duration) (*link, error) {
	js, err := streamsOf(nc)
	if err != nil {
		return nil, err
	}
	return &link{nc: nc, js: js, logger: cmp.Or(logger, slog.New(slog.DiscardHandler)), timeout: timeout}, nil
}

// contexts are those of open connections.
var contexts = struct {
	sync.Mutex
	of map[*nats.Conn]jetstream.JetStream
}{of: map[*nats.Conn]jetstream.JetStream{}}

// streamsOf returns the one context of a connection. The first batch that it publishes gives it a subscription and two goroutines, which
// live as long as the connection: a coordinator opens a queue for each of its campaigns.
func streamsOf(nc *nats.Conn) (jetstream.JetStream, error) {
	contexts.Lock()
	defer contexts.Unlock()
	maps.DeleteFunc(contexts.of, func(nc *nats.Conn, _ jetstream.JetStream) bool { return nc.IsClosed() })
	if js := contexts.of[nc]; js != nil {
		return js, nil
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishTimeout), jetstream.WithPublishAsyncMaxPending(maxPending))
	if err == nil {
		contexts.of[nc] = js
	}
	return js, err
}

// withRetry calls act until it succeeds, fails permanently, or l.timeout is over; the error then wraps ErrUnavailable.
// Each attempt has its own deadline. stream is the stream that must exist for act to get an answer, or "".
func (l *link) withRetry(ctx context.Context, stream string, act func(ctx context.Context) error) error {
	return l.retry(ctx, func() error { return l.attempt(ctx, stream, act) })
}

// retry calls act until it succeeds, returns a permanent error, or l.timeout is over.
func (l *link) retry(ctx context.Context, act func() error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, act() },
		backoff.WithBackOff(retry.NewBackOff(firstPause, longestPause)), backoff.WithMaxElapsedTime(l.timeout),
		backoff.WithNotify(func(err error, _ time.Duration) {
			if l.timeout == 0 {
				l.logger.Warn("reading was interrupted, will resume", "reason", err)
			}
		}))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// attempt calls act once. A transient error wraps ErrUnavailable; every other error is permanent.
func (l *link) attempt(ctx context.Context, stream string, act func(ctx context.Context) error) error {
	before := l.nc.LastError()
	connected, disconnect := l.whileConnected(ctx)
	defer disconnect()
	timed, cancel := context.WithTimeout(connected, attemptTimeout)
	defer cancel()
	err := act(timed)
	switch {
	case err == nil:
		return nil
	case l.nc.IsClosed():
		return backoff.Permanent(ErrClosed)
	case !transient(err):
		return backoff.Permanent(serverError(err))
	}
	if denied := l.denied(before, ""); denied != nil {
		return backoff.Permanent(denied)
	}
	if unanswered(err) && stream != "" && l.missing(ctx, stream) {
		return backoff.Permanent(fmt.Errorf("%w: there is no stream %s", ErrNotReady, stream))
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// denied returns ErrAccess when the server has reported a missing permission since the connection's last error was
// before, for a subject that contains a text: other calls use the connection too. The server reports it asynchronously and does not
// answer the request.
func (l *link) denied(before error, subject string) error {
	now := l.nc.LastError()
	if now == before || !errors.Is(now, nats.ErrPermissionViolation) || //nolint:errorlint // the same value is the old error
		!strings.Contains(now.Error(), subject) {
		return nil
	}
	return notPermitted(now)
}

// notPermitted returns ErrAccess for a violation of permissions, which names the subject.
func notPermitted(violation error) error {
	return fmt.Errorf("%w: %w; use the user of this role, with all permissions of docs/security/nats-accounts.conf", ErrAccess, violation)
}

// whileConnected returns ctx with a cancel function. The context also ends when the connection is lost: answers to
// requests on it no longer arrive.
func (l *link) whileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := l.onStatus(cancel, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	return ctx, func() {
		stop()
		cancel()
	}
}

// onStatus calls f once when the connection enters one of the states. stop ends the watch and joins its goroutine.
func (l *link) onStatus(f func(), states ...nats.Status) (stop func()) {
	changed := l.nc.StatusChanged(states...)
	watch := lifecycle.Go(context.Background(), func(context.Context) error {
		if _, open := <-changed; open {
			f()
		}
		return nil
	})
	return func() {
		l.nc.RemoveStatusListener(changed) // closes changed
		watch.Stop()
	}
}

func (l *link) missing(ctx context.Context, stream string) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := l.js.Stream(ctx, stream)
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// Error codes of the server.
const (
	codeAccountResources  jetstream.ErrorCode = 10002
	codeNoPeers           jetstream.ErrorCode = 10005
	codeResources         jetstream.ErrorCode = 10023
	codeMemory            jetstream.ErrorCode = 10028
	codeStorage           jetstream.ErrorCode = 10047
	codeReplicas          jetstream.ErrorCode = 10074
	codeMaxConsumers      jetstream.ErrorCode = 10026
	codeMaxStreams        jetstream.ErrorCode = 10027
	codeMaxBytesRequired  jetstream.ErrorCode = 10113
	codeSubjectsOverlap   jetstream.ErrorCode = 10065
	codeNoLimits          jetstream.ErrorCode = 10120
	codeMaxBytes          jetstream.ErrorCode = 10122
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeWrongLastSequence                     = jetstream.JSErrCodeStreamWrongLastSequence
	codeWrongLastConstant                     = jetstream.JSErrCodeStreamWrongLastSequenceConstant
)

// unanswered reports whether no server received a request, or the answer did not arrive.
func unanswered(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// transient reports whether the same request may succeed later: there is no connection, no leader, or no answer.
// Callers check their own context first.
func transient(err error) bool {
	if unanswered(err) {
		return true
	}
	for _, e := range []error{
		context.Canceled, // by whileConnected
		nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
		jetstream.ErrAsyncPublishTimeout, jetstream.ErrTooManyStalledMsgs,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) || full(api) {
		return false
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return false
	case codeNoPeers: // a server of the cluster is down
		return true
	case codeConsumerCreate: // the server still removes the files of a deleted consumer of this name
		return true
	}
	return api.Code == 503
}

func full(api *jetstream.APIError) bool {
	switch api.ErrorCode {
	case codeAccountResources, codeResources, codeMemory, codeStorage:
		return true
	case codeNoPeers:
		return strings.Contains(api.Description, "insufficient storage")
	case codeStoreFailed:
		for _, text := range []string{"maximum bytes", "maximum messages", "no space left", "resource"} {
			if strings.Contains(api.Description, text) {
				return true
			}
		}
	}
	return false
}

// limits returns the remedy for a refusal of streams or consumers, or "".
func limits(api *jetstream.APIError) string {
	switch api.ErrorCode {
	case codeReplicas:
		return "give --replicas 1, or connect to servers that form a cluster"
	case codeMaxStreams:
		return "raise the streams of the account's JetStream limits: ddiff has three"
	case codeMaxConsumers:
		return "raise the consumers of the account's JetStream limits: ddiff has one for each open campaign, and one for each reader"
	case codeMaxBytesRequired, codeMaxBytes, codeNoLimits:
		return "let the account have streams without a size limit: its JetStream limits must not require max_bytes"
	}
	return ""
}

// conflict reports whether a conditional write lost against another write.
func conflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeWrongLastSequence || api.ErrorCode == codeWrongLastConstant)
}

// serverError wraps an error of the client or the server in the matching sentinel.
func serverError(err error) error {
	var api *jetstream.APIError
	var sentinel error
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrConnectionClosed):
		sentinel = ErrClosed
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		sentinel = ErrTooLarge
	case errors.Is(err, ErrAccess):
		return err
	case errors.Is(err, nats.ErrPermissionViolation):
		return notPermitted(err)
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound),
		errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrBucketNotFound):
		sentinel = ErrNotReady
	case errors.As(err, &api) && full(api):
		sentinel = ErrFull
	case api != nil && limits(api) != "":
		sentinel = ErrLimits
	default:
		return err
	}
	if errors.Is(err, sentinel) {
		return err
	}
	if sentinel == ErrLimits { //nolint:errorlint // set above
		return fmt.Errorf("%w: %w; %s", sentinel, err, limits(api))
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}
