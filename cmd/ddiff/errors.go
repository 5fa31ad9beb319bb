package main

import "errors"

// usageError is a wrong flag or argument.
type usageError struct{ error }

// usage marks an error of a flag or an argument, which ends a command with exitUsage.
func usage(err error) error { return usageError{err} }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// Is makes every usageError match errUsage.
func (e usageError) Is(target error) bool { return target == errUsage }

// Errors that end a command.
var (
	// errUsage: a flag, an argument or a field of a campaign file is wrong.
	errUsage = errors.New("wrong use")
	// errIncomplete: some items failed or are dead.
	errIncomplete = errors.New("some items could not be restored")
	// errRejected, errCancelled: the campaign ended without its items.
	errRejected  = errors.New("campaign was rejected")
	errCancelled = errors.New("campaign was cancelled")
	// errMismatch: an output differs from its passport, or from its replay.
	errMismatch = errors.New("mismatch")
	// errPrior: the prior cannot be read or used.
	errPrior = errors.New("prior")
	// errOperator: an operator or a metric cannot be read or used.
	errOperator = errors.New("operator")
	// errReportFile: the file of a report cannot be written.
	errReportFile = errors.New("write report")
	// errRestoredFile: a restored picture cannot be written.
	errRestoredFile = errors.New("write restored picture")
	// errNoGPU: the device to check does not exist or cannot be opened.
	errNoGPU = errors.New("no GPU to check")
)
