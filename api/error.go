package api

import (
	"errors"
	"net/http"
	"strings"

	"ddiff/internal/failure"
)

// The conditions of requests that fail. [Error] wraps one of them.
var (
	// ErrInvalid: a value of the request is wrong.
	ErrInvalid = failure.New(failure.Input, "invalid")
	// ErrNotFound: there is no such campaign, item or file.
	ErrNotFound = failure.New(failure.Input, "not found")
	// ErrRefused: the state of the campaign does not permit the request.
	ErrRefused = failure.New(failure.Input, "refused")
	// ErrNoToken: the request has no valid token. ErrDenied: the role of the token does not permit it.
	ErrNoToken = failure.New(failure.Input, "no token")
	ErrDenied  = failure.New(failure.Input, "denied")
	// ErrUnavailable: the queue, a leading coordinator, or the server does not answer. ErrStore: the store does not.
	ErrUnavailable = failure.New(failure.Server, "unavailable")
	ErrStore       = failure.New(failure.Output, "store unavailable")
	// ErrUnexpected: anything else.
	ErrUnexpected = errors.New("unexpected")
)

func conditions() []condition {
	return []condition{
		{ErrInvalid, http.StatusUnprocessableEntity}, {ErrNotFound, http.StatusNotFound}, {ErrRefused, http.StatusConflict},
		{ErrNoToken, http.StatusUnauthorized}, {ErrDenied, http.StatusForbidden}, {ErrUnavailable, http.StatusServiceUnavailable},
		{ErrUnavailable, http.StatusTooManyRequests}, {ErrStore, http.StatusServiceUnavailable}, {ErrUnexpected, http.StatusInternalServerError},
	}
}

type condition struct {
	err    error
	status int
}

func (c condition) urn() string { return "urn:ddiff:" + strings.ReplaceAll(c.err.Error(), " ", "-") }

// Error is a request that failed. As JSON it is a problem of RFC 9457.
type Error struct {
	// Type names the condition, as in urn:ddiff:not-found.
	Type string `json:"type,omitempty"`
	// Title is the text of the status, Status the HTTP status.
	Title  string `json:"title,omitempty"`
	Status int    `json:"status,omitempty"`
	// Detail is one line for people, or one for each of several causes.
	Detail string `json:"detail,omitempty"`
	// Errors are the wrong fields of a request.
	Errors []ErrorDetail `json:"errors,omitempty"`
}

// ErrorDetail is one wrong field.
type ErrorDetail struct {
	Message string `json:"message,omitempty"`
	// Location is the path of the field, Value what it has.
	Location string `json:"location,omitempty"`
	Value    any    `json:"value,omitempty"`
}

// NewError returns an error with a condition of this package and a line for people.
func NewError(err error, detail string) *Error {
	for _, c := range conditions() {
		if errors.Is(err, c.err) {
			return &Error{Type: c.urn(), Title: http.StatusText(c.status), Status: c.status, Detail: detail}
		}
	}
	return NewError(ErrUnexpected, detail)
}

// Error returns the line for people.
func (e *Error) Error() string { return e.Detail }

// GetStatus returns the HTTP status.
func (e *Error) GetStatus() int { return e.Status }

// ContentType returns the media type of a problem.
func (e *Error) ContentType(string) string { return "application/problem+json" }

// Unwrap returns the condition. Problems of a newer server have the condition of their status.
func (e *Error) Unwrap() error {
	for _, c := range conditions() {
		if c.urn() == e.Type {
			return c.err
		}
	}
	for _, c := range conditions() {
		if c.status == e.Status {
			return c.err
		}
	}
	if e.Status >= 400 && e.Status < 500 {
		return ErrInvalid
	}
	return ErrUnexpected
}
