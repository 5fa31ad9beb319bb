package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/coordinator"
	"ddiff/coordinator/report"
	"ddiff/coordinator/shard"
	"ddiff/coordinator/tune"
	"ddiff/dataset"
	"ddiff/gpuworker"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/check"
	"ddiff/restore/gpucheck"
	"ddiff/restore/method"
	"ddiff/restore/metric"
	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/restore/tile"
	"ddiff/storage"
)

// The exit codes. exitClasses describes each of them.
const (
	exitDone        = 0
	exitUnexpected  = 1
	exitUsage       = 2
	exitIncomplete  = 3
	exitRuntime     = 4
	exitLocked      = 5
	exitOutput      = 6
	exitPrior       = 7
	exitNoGPU       = 8
	exitNATS        = 9
	exitHung        = 10
	exitInterrupted = 130
)

// exitClass is one exit code with the errors that lead to it.
type exitClass struct {
	code    int
	meaning string
	errors  []error
}

// exitClasses is the table of exit codes, the first match first: an error may wrap errors of several classes.
func exitClasses() []exitClass {
	return []exitClass{
		{exitDone, "everything is done", nil},
		{exitHung, "a stage of the worker hung; a new process can continue", []error{gpuworker.ErrHung}},
		{exitInterrupted, "interrupted; the same command resumes", []error{context.Canceled}},
		{exitUsage, "a wrong flag, campaign file or dataset", []error{
			errUsage, queue.ErrConfig, manifest.ErrNoDataset, manifest.ErrEmptyDataset, manifest.ErrBadList, dataset.ErrRefused, storage.ErrAddress,
			report.ErrVersions,
		}},
		{exitPrior, "the prior, an operator or a bundle cannot be used", []error{
			errPrior, errOperator, prior.ErrCard, prior.ErrGraph, modelfile.ErrModel, modelfile.ErrExternal, metric.ErrNetwork, gpuworker.ErrPriorFile,
			check.ErrVectors, check.ErrInterface, check.ErrNotFinite, prior.ErrBundle, operator.ErrGradient, operator.ErrFile, infer.ErrNoGradient, infer.ErrShape, gpuworker.ErrOperatorFile,
		}},
		{exitNoGPU, "there is no GPU to check", []error{errNoGPU, gpucheck.ErrAbsent}},
		{exitRuntime, "ONNX Runtime, or the execution provider, is missing or unusable", []error{
			onnxruntime.ErrRuntime, onnxruntime.ErrProvider, onnxruntime.ErrFallback, onnxruntime.ErrPrecision, install.ErrUnsafeArchive,
			install.ErrNotFound, install.ErrNoPlugin, install.ErrUnsupported, install.ErrChecksum, install.ErrClientMissing, install.ErrDownload,
		}},
		{exitLocked, "another process uses the output", []error{storage.ErrLocked}},
		{exitOutput, "the output cannot be written, or the dataset's server does not answer", []error{
			storage.ErrNoSpace, storage.ErrReadOnly, storage.ErrConflict, storage.ErrUnavailable, storage.ErrAccess,
			storage.ErrNoBucket, storage.ErrCertificate, storage.ErrNoConditionalWrites, storage.ErrCorrupt, storage.ErrChanged, storage.ErrTooLarge, report.ErrTemporary, errReportFile, errRestoredFile,
		}},
		{exitNATS, "the NATS servers cannot be used, or no coordinator answers", []error{
			coordinator.ErrNoLeader, coordinator.ErrNoIndex,
			queue.ErrUnreachable, queue.ErrAccess, queue.ErrCertificate, queue.ErrServerVersion, queue.ErrNoJetStream,
			queue.ErrUnavailable, queue.ErrNotReady, queue.ErrFull, queue.ErrClosed,
		}},
		{exitIncomplete, "the run ended, but some items failed or are dead; or an output does not match its record", []error{
			errIncomplete, errRejected, errCancelled, errMismatch, report.ErrArtifact, gpucheck.ErrBounds,
		}},
		{exitUnexpected, "an unexpected error", nil},
	}
}

// wrongInputs are the errors of input that end a command with exitUsage, if no class of the table names the error: an
// unreadable file, for example, may be a prior.
func wrongInputs() []error {
	return []error{
		queue.ErrBadName, install.ErrEP, install.ErrClient, storage.ErrBadKey, manifest.ErrEmptyFile, dataset.ErrAddress, dataset.ErrNotFound,
		dataset.ErrTooLarge, dataset.ErrDenied, report.ErrNotComparable, report.ErrFilter, report.ErrScores, report.ErrPublished,
		report.ErrUnknownRule, report.ErrUnknownFormat, tune.ErrSides, tune.ErrNoFigure, tune.ErrRace, tune.ErrRecord,
		method.ErrSetting, operator.ErrTask, operator.ErrShape, operator.ErrNoSVD, operator.ErrRange, tile.ErrTiling, parameter.ErrInvalid, solver.ErrConfig, regular.ErrKind,
		regular.ErrTooLarge, shard.ErrMoved, manifest.ErrNewer, coordinator.ErrRefused, queue.ErrNoRecord, gpucheck.ErrConfig,
		raster.ErrFormat, raster.ErrTruncated, raster.ErrTooLarge, raster.ErrShape, raster.ErrNotFinite,
	}
}

// usageError is a wrong flag or argument.
type usageError struct{ error }

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
	// errReportFile: the file of a report cannot be written.
	errReportFile = errors.New("write report")
	// errRestoredFile: a restored picture cannot be written.
	errRestoredFile = errors.New("write restored picture")
	// errNoGPU: the device to check does not exist or cannot be opened.
	errNoGPU = errors.New("no GPU to check")
)

// exitCode returns the exit code of an error: the first class of the table that matches.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	var field *manifest.FieldError
	if errors.As(err, &field) || untypedUsage(err) {
		err = errors.Join(err, errUsage)
	}
	for _, class := range exitClasses() {
		if slices.ContainsFunc(class.errors, func(target error) bool { return errors.Is(err, target) }) {
			return class.code
		}
	}
	if slices.ContainsFunc(wrongInputs(), func(target error) bool { return errors.Is(err, target) }) {
		return exitUsage
	}
	return exitUnexpected
}

// untypedUsage recognises the usage error of cobra that has no type.
func untypedUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command")
}

// message is the text of an error for people, one line for each of its causes.
func message(err error) string {
	if errors.Is(err, gpuworker.ErrHung) {
		return printable(strings.ReplaceAll(err.Error(), "\n", "; ")) + "; if the machine is only slow, raise --stage-timeout"
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted; rerun the same command to resume"
	}
	text := err.Error()
	if strings.HasPrefix(text, "unknown command") {
		text = strings.ReplaceAll(text, "\n\nDid you mean this?\n\t", "; did you mean ")
		return printable(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n\t", " or ") + "; see: ddiff --help")
	}
	return lines(err)
}

// newExitCodesTopic is the help topic that lists the exit codes.
func newExitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Every command ends with one of these exit codes:\n\n")
	classes := exitClasses()
	var order []string
	for _, c := range classes[1:] {
		order = append(order, strconv.Itoa(c.code))
	}
	slices.SortFunc(classes, func(a, b exitClass) int { return cmp.Compare(a.code, b.code) })
	for _, c := range classes {
		fmt.Fprintf(&b, "  %-3d  %s\n", c.code, c.meaning)
	}
	fmt.Fprintf(&b, "\nIf several errors end a command, the exit code is the first of %s.", strings.Join(order, ", "))
	return &cobra.Command{Use: "exit-codes", Short: "List the exit codes", Long: b.String()}
}

// priorError wraps errPrior around errors of a network that cannot be used.
func priorError(err error) error {
	if errors.Is(err, prior.ErrGraph) || errors.Is(err, prior.ErrBundle) {
		return fmt.Errorf("%w: %w", errPrior, err)
	}
	return err
}

// openPrior opens a prior. Its errors wrap errPrior.
func openPrior(path string) (*prior.Prior, error) {
	p, err := prior.Open(path)
	part := errors.Is(err, prior.ErrBundle) || errors.Is(err, modelfile.ErrExternal) // the error names it
	if errors.Is(err, fs.ErrNotExist) && !part {
		return nil, fmt.Errorf("%w %s: no such file; use --prior bundled, the path of an ONNX file or the folder of a bundle", errPrior, redact.Address(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPrior, err)
	}
	return p, nil
}
