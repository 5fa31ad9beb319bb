package storage_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"ddiff/storage"
)

// TestAttackFalseListing: an answer to a listing with the status 200 that is no listing is an error, not an empty listing. Also the
// second page of a listing is not its end.
func TestAttackFalseListing(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	config := p.config
	config.Retry.Attempts = 1
	s := openS3(t, config)
	must(t, s.Put(t.Context(), "list/a", nil))
	for body, want := range map[string]error{
		`<?xml version="1.0"?><Error><Code>InternalError</Code><Message>busy</Message></Error>`: storage.ErrUnavailable,
		`<Error><Code>SomethingNew</Code></Error>`:                                              storage.ErrUnavailable,
		`<Error><Code>AccessDenied</Code></Error>`:                                              storage.ErrAccess,
		`<Error><Code>NoSuchBucket</Code></Error>`:                                              storage.ErrNoBucket,
		`<!DOCTYPE html><html><body>maintenance</body></html>`:                                  storage.ErrUnavailable,
		``: storage.ErrUnavailable,
		`<Other xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></Other>`: storage.ErrUnavailable,
	} {
		p.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			io.WriteString(w, body) //nolint:errcheck // a test
		})
		n := 0
		var failure error
		for _, err := range s.List(t.Context(), "list/") {
			if failure = err; err == nil {
				n++
			}
		}
		if !errors.Is(failure, want) || n > 0 {
			t.Errorf("%s: %d objects, error %v, want %v", body, n, failure, want)
		}
	}
}

// TestAttackClockOfS3: a server that refuses the time of a request says nothing about the keys.
func TestAttackClockOfS3(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	p.set(answer(http.StatusForbidden, "RequestTimeTooSkewed"))
	_, err := storage.OpenS3(t.Context(), p.config)
	if !errors.Is(err, storage.ErrAccess) || !strings.Contains(err.Error(), "set the clock") || strings.Contains(err.Error(), "check the keys") {
		t.Errorf("a skewed clock: %v", err)
	}
}
