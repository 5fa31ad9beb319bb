package cli

import "errors"

// usageError is a wrong flag or argument.
type usageError struct{ error }

// Usage marks an error of a flag or an argument, which ends a command with exitUsage.
func Usage(err error) error { return usageError{err} }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// Is makes every usageError match errUsage.
func (e usageError) Is(target error) bool { return target == errUsage }

// Errors that end a command.
var (
	// errUsage: a flag, an argument or a field of a campaign file is wrong.
	errUsage = errors.New("wrong use")
	// ErrIncomplete: some items failed or are dead.
	ErrIncomplete = errors.New("some items could not be restored")
	// ErrRejected, ErrCancelled: the campaign ended without its items.
	ErrRejected  = errors.New("campaign was rejected")
	ErrCancelled = errors.New("campaign was cancelled")
	// ErrMismatch: an output differs from its passport, or from its replay.
	ErrMismatch = errors.New("mismatch")
	// ErrPrior: the prior cannot be read or used.
	ErrPrior = errors.New("prior")
	// ErrOperator: an operator or a metric cannot be read or used.
	ErrOperator = errors.New("operator")
	// ErrReportFile: the file of a report cannot be written.
	ErrReportFile = errors.New("write report")
	// ErrRestoredFile: a restored picture cannot be written.
	ErrRestoredFile = errors.New("write restored picture")
)
