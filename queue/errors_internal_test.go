package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestErrorClasses has the errors of the client and the server that a call repeats, and the sentinels of the others.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	api := func(status int, code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("publish: %w", &jetstream.APIError{Code: status, ErrorCode: code, Description: text})
	}
	for name, c := range map[string]struct {
		err       error
		transient bool
		sentinel  error
	}{
		"no responders":             {nats.ErrNoResponders, true, nil},
		"no answer of a stream":     {jetstream.ErrNoStreamResponse, true, nil},
		"timeout":                   {nats.ErrTimeout, true, nil},
		"deadline":                  {context.DeadlineExceeded, true, nil},
		"connection lost":           {context.Canceled, true, nil},
		"disconnected":              {nats.ErrDisconnected, true, nil},
		"reconnecting":              {nats.ErrConnectionReconnecting, true, nil},
		"closed":                    {nats.ErrConnectionClosed, false, ErrClosed},
		"payload":                   {nats.ErrMaxPayload, false, ErrTooLarge},
		"permission":                {nats.ErrPermissionViolation, false, ErrAccess},
		"stream is missing":         {jetstream.ErrStreamNotFound, false, ErrNotReady},
		"consumer is missing":       {jetstream.ErrConsumerNotFound, false, ErrNotReady},
		"consumer was deleted":      {jetstream.ErrConsumerDeleted, false, ErrNotReady},
		"bucket is missing":         {jetstream.ErrBucketNotFound, false, ErrNotReady},
		"a server is down":          {api(400, codeNoPeers, "no suitable peers"), true, nil},
		"files are being removed":   {api(500, codeConsumerCreate, "rename o.dat.tmp: no such file or directory"), true, nil},
		"no leader":                 {api(503, 10008, "temporarily unavailable"), true, nil},
		"another status":            {api(500, 10008, "internal"), false, nil},
		"JetStream is off":          {api(503, jetstream.JSErrCodeJetStreamNotEnabled, "off"), false, nil},
		"JetStream is off here":     {api(503, jetstream.JSErrCodeJetStreamNotEnabledForAccount, "off"), false, nil},
		"account is full":           {api(503, codeAccountResources, "resources"), false, ErrFull},
		"server is full":            {api(503, codeResources, "resources"), false, ErrFull},
		"memory is full":            {api(503, codeMemory, "memory"), false, ErrFull},
		"disk is full":              {api(503, codeStorage, "storage"), false, ErrFull},
		"stream is full":            {api(503, codeStoreFailed, "maximum messages exceeded"), false, ErrFull},
		"no space":                  {api(503, codeStoreFailed, "write: no space left on device"), false, ErrFull},
		"another failure of a disk": {api(503, codeStoreFailed, "input/output error"), true, nil},
		"any other error":           {errors.New("odd"), false, nil},
	} {
		if got := transient(c.err); got != c.transient {
			t.Errorf("%s: transient %t", name, got)
		}
		mapped := serverError(c.err)
		if !errors.Is(mapped, c.err) || c.sentinel != nil && !errors.Is(mapped, c.sentinel) {
			t.Errorf("%s: error %v, want %v", name, mapped, c.sentinel)
		}
		if again := serverError(mapped); again != mapped { //nolint:errorlint // not wrapped twice
			t.Errorf("%s: error %v after a second call", name, again)
		}
		for _, other := range []error{ErrClosed, ErrTooLarge, ErrAccess, ErrNotReady, ErrFull} {
			if other != c.sentinel && errors.Is(mapped, other) { //nolint:errorlint // sentinels
				t.Errorf("%s: error %v is also %v", name, mapped, other)
			}
		}
	}
	for code, want := range map[jetstream.ErrorCode]bool{codeWrongLastSequence: true, codeWrongLastConstant: true, codeStorage: false} {
		if conflict(api(400, code, "wrong last sequence")) != want {
			t.Errorf("code %d: conflict %t", code, !want)
		}
	}
	if conflict(errors.New("odd")) || conflict(nil) {
		t.Error("an error without a code is a conflict")
	}
}

// The end of a pull request without items is no error; an end by the server is an outage.
func TestFetchErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, context.DeadlineExceeded, nats.ErrTimeout} {
		if got := fetchError(err); got != nil {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{
		jetstream.ErrNoHeartbeat, jetstream.ErrServerShutdown, jetstream.ErrConsumerLeadershipChanged, nats.ErrNoResponders, nats.ErrDisconnected,
	} {
		if got := fetchError(err); !errors.Is(got, ErrUnavailable) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := fetchError(jetstream.ErrConsumerDeleted); !errors.Is(got, ErrNotReady) || errors.Is(got, ErrUnavailable) {
		t.Errorf("a deleted consumer: %v", got)
	}
}
