package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/install"
	"ddiff/restore/prior"
	"ddiff/storage"
)

const exitCodes = `Exit codes:
  0    everything is done
  1    an unexpected error
  2    a wrong flag, campaign file or dataset
  3    the run ended, but some items failed or are dead; or an output is not what it should be
  4    ONNX Runtime, or the execution provider, is missing or unusable
  5    another process uses the output
  6    the output cannot be written
  7    the prior, or an operator or bundle, cannot be used
  8    there is no GPU to check
  9    the NATS servers cannot be used
  130  interrupted; the same command goes on`

// usageError is a wrong flag or argument.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Errors that end a run.
var (
	// errIncomplete: some items failed or are dead.
	errIncomplete = errors.New("some items could not be restored")
	// errMismatch: an output is not what its passport says, or its replay is another image.
	errMismatch = errors.New("mismatch")
	// errPrior: the prior cannot be read or used.
	errPrior = errors.New("prior")
	// errNoGPU: the device that is to be checked is not there, or cannot be opened.
	errNoGPU = errors.New("no GPU to check")
)

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var usage usageError
	var field *manifest.FieldError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return 130
	case errors.As(err, &usage), errors.As(err, &field), errors.Is(err, manifest.ErrNoDataset),
		errors.Is(err, manifest.ErrEmptyDataset), errors.Is(err, manifest.ErrBadList), errors.Is(err, storage.ErrAddress):
		return 2
	case errors.Is(err, errPrior), errors.Is(err, errOperator), errors.Is(err, prior.ErrCard), errors.Is(err, prior.ErrGraph), errors.Is(err, onnx.ErrModel):
		return 7
	case errors.Is(err, errNoGPU):
		return 8
	case errors.Is(err, onnx.ErrRuntime), errors.Is(err, onnx.ErrProvider), errors.Is(err, install.ErrNotFound),
		errors.Is(err, install.ErrUnsupported), errors.Is(err, install.ErrChecksum), errors.Is(err, install.ErrClientMissing):
		return 4
	case errors.Is(err, storage.ErrLocked):
		return 5
	case errors.Is(err, storage.ErrNoSpace), errors.Is(err, storage.ErrReadOnly), errors.Is(err, storage.ErrConflict),
		errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrAccess), errors.Is(err, storage.ErrNoBucket),
		errors.Is(err, storage.ErrCertificate), errors.Is(err, storage.ErrNoConditionalWrites):
		return 6
	case errors.Is(err, queue.ErrUnreachable), errors.Is(err, queue.ErrAccess), errors.Is(err, queue.ErrCertificate),
		errors.Is(err, queue.ErrServerVersion), errors.Is(err, queue.ErrNoJetStream), errors.Is(err, queue.ErrUnavailable),
		errors.Is(err, queue.ErrNotReady), errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrClosed):
		return 9
	case errors.Is(err, errIncomplete), errors.Is(err, errMismatch):
		return 3 // and nothing worse
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "accepts "),
		strings.HasPrefix(err.Error(), "required flag"):
		return 2 // cobra has no error types for these
	}
	return 1
}

// message is what a person reads: an interruption is no accident.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted; run the same command again to go on"
	}
	return err.Error()
}

// openPrior opens a prior and marks every error as the prior's.
func openPrior(path string) (*prior.Prior, error) {
	p, err := prior.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w %s: there is no such file; use --prior bundled or the path of an ONNX file", errPrior, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPrior, err)
	}
	return p, nil
}

// isTerminal tells whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
