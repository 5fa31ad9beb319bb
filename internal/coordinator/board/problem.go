package board

import (
	"context"
	"errors"
	"strings"

	"ddiff/api"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

// Problem returns an error as the problem that the HTTP API and the leader answer.
func Problem(err error) *api.Error {
	var problem *api.Error
	if errors.As(err, &problem) {
		return problem
	}
	condition := api.ErrUnexpected
	for _, class := range []struct {
		condition error
		causes    []error
	}{
		{api.ErrNotFound, []error{queue.ErrNoRecord, queue.ErrBadName, storage.ErrNotFound, storage.ErrBadKey}},
		{api.ErrRefused, []error{ErrRefused, ErrOtherCluster, storage.ErrReadOnly}},
		{api.ErrStore, []error{api.ErrStore, storage.ErrUnavailable, storage.ErrAccess, storage.ErrCorrupt}},
		{api.ErrUnavailable, []error{
			ErrNoLeader, queue.ErrUnavailable, queue.ErrNotReady, queue.ErrClosed, queue.ErrAccess, queue.ErrFull,
			context.DeadlineExceeded, context.Canceled,
		}},
	} {
		for _, cause := range class.causes {
			if errors.Is(err, cause) && errors.Is(condition, api.ErrUnexpected) {
				condition = class.condition
			}
		}
	}
	fields := FieldErrors(err)
	if len(fields) > 0 {
		condition = api.ErrInvalid
	}
	problem = api.NewError(condition, strings.ReplaceAll(err.Error(), "\n", "; "))
	for _, f := range fields {
		problem.Errors = append(problem.Errors, api.ErrorDetail{Message: f.Err.Error(), Location: f.Field})
	}
	return problem
}

// FieldErrors returns the wrong fields among the causes of an error.
func FieldErrors(err error) []*manifest.FieldError {
	if field, ok := err.(*manifest.FieldError); ok { //nolint:errorlint // this function walks the tree
		return []*manifest.FieldError{field}
	}
	switch tree := err.(type) { //nolint:errorlint // this function walks the tree
	case interface{ Unwrap() []error }:
		var all []*manifest.FieldError
		for _, err := range tree.Unwrap() {
			all = append(all, FieldErrors(err)...)
		}
		return all
	case interface{ Unwrap() error }:
		return FieldErrors(tree.Unwrap())
	}
	return nil
}
