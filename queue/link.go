package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// defaultPatience is how long a call goes on while the server has no answer. A new
	// leader of a replicated stream is found within ten seconds or so.
	defaultPatience = 30 * time.Second
	// attemptTimeout bounds one attempt of a call: a request that was lost with a server is
	// made again.
	attemptTimeout = 5 * time.Second
	// The pause between two attempts grows from the first to the longest.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// link is a connection, with the endurance to get over the short troubles of a server.
type link struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	logger   *slog.Logger
	patience time.Duration
}

func newLink(nc *nats.Conn, logger *slog.Logger, patience time.Duration) (*link, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishTimeout), jetstream.WithPublishAsyncMaxPending(2*maxInFlight))
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &link{nc: nc, js: js, logger: logger, patience: patience}, nil
}

// persist calls act until it succeeds, fails for good, or patience is over. The context of
// each attempt has a deadline of its own. stream is the one that must exist for act to get an
// answer, or "".
func (l *link) persist(ctx context.Context, stream string, act func(ctx context.Context) error) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		denied := l.nc.LastError()
		attempt, cancel := l.unbroken(ctx)
		attempt, cancelTimeout := context.WithTimeout(attempt, attemptTimeout)
		err := act(attempt)
		cancelTimeout()
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case l.nc.IsClosed():
			return ErrClosed
		}
		if !transient(err) {
			return serverError(err)
		}
		// The server tells of a missing permission on the side, and does not answer.
		if now := l.nc.LastError(); now != denied && errors.Is(now, nats.ErrPermissionViolation) { //nolint:errorlint // the same value is no news
			return fmt.Errorf("%w: %w", ErrAccess, now)
		}
		if unanswered(err) && stream != "" && l.missing(ctx, stream) {
			return fmt.Errorf("%w: there is no stream %s", ErrNotReady, stream)
		}
		if time.Since(begin)+pause > l.patience {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2)); err != nil {
			return err
		}
	}
}

// unbroken is ctx, which ends when the connection is lost as well: the answers to what was sent
// over it do not come any more.
func (l *link) unbroken(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	status := l.nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	go func() {
		if _, ok := <-status; ok {
			cancel()
		}
	}()
	return ctx, func() {
		l.nc.RemoveStatusListener(status)
		cancel()
	}
}

// missing reports whether the server says that there is no such stream.
func (l *link) missing(ctx context.Context, stream string) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := l.js.Stream(ctx, stream)
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// connected waits until there is a connection, at most for wait.
func (l *link) connected(ctx context.Context, wait time.Duration) bool {
	if l.nc.IsConnected() || l.nc.IsClosed() {
		return true
	}
	status := l.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer l.nc.RemoveStatusListener(status)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for !l.nc.IsConnected() && !l.nc.IsClosed() {
		select {
		case <-status:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The server's codes that matter here.
const (
	codeAccountResources  jetstream.ErrorCode = 10002
	codeNoPeers           jetstream.ErrorCode = 10005
	codeResources         jetstream.ErrorCode = 10023
	codeMemory            jetstream.ErrorCode = 10028
	codeStorage           jetstream.ErrorCode = 10047
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeWrongLastSequence                     = jetstream.JSErrCodeStreamWrongLastSequence
	codeWrongLastConstant                     = jetstream.JSErrCodeStreamWrongLastSequenceConstant
)

// unanswered reports that nobody listened to a request, or that the answer did not come.
func unanswered(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// transient reports whether the same request may work a little later: while there is no
// connection, no leader, or no answer. What the caller's context ended is not asked about.
func transient(err error) bool {
	if unanswered(err) {
		return true
	}
	for _, e := range []error{
		context.Canceled, // see unbroken
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
	case codeNoPeers: // a server of the cluster is away
		return true
	}
	return api.Code == 503
}

// full reports whether the server has no space left.
func full(api *jetstream.APIError) bool {
	switch api.ErrorCode {
	case codeAccountResources, codeResources, codeMemory, codeStorage:
		return true
	case codeStoreFailed:
		for _, text := range []string{"maximum bytes", "maximum messages", "no space left", "resource"} {
			if strings.Contains(api.Description, text) {
				return true
			}
		}
	}
	return false
}

// conflict reports whether a message was refused because another one was stored before.
func conflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeWrongLastSequence || api.ErrorCode == codeWrongLastConstant)
}

// serverError puts the sentinel that fits in front of an error of the client or the server.
func serverError(err error) error {
	var api *jetstream.APIError
	var sentinel error
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrConnectionClosed):
		sentinel = ErrClosed
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		sentinel = ErrTooLarge
	case errors.Is(err, nats.ErrPermissionViolation):
		sentinel = ErrAccess
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound),
		errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrBucketNotFound):
		sentinel = ErrNotReady
	case errors.As(err, &api) && full(api):
		sentinel = ErrFull
	default:
		return err
	}
	if errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}
