// Package cli has what the commands of several groups share: exit codes and the errors behind them, text and progress for terminals, the
// flags of the device, the datasets, the process and the stages of a worker, and the opening of priors, outputs and stores.
//
// It imports no package of cmd/ddiff and none below internal/cli. An error of a flag or an argument is made with [Usage]; every
// other error of a command wraps a sentinel that the table of exit codes lists, or ends the command with the code of an unexpected error.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ddiff/api"
	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/coordinator/report/comparison"
	"ddiff/coordinator/report/published"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/table"
	"ddiff/coordinator/shard"
	"ddiff/coordinator/tune"
	"ddiff/dataset"
	"ddiff/gpuworker/enginecache"
	"ddiff/gpuworker/guard"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/check"
	"ddiff/restore/item"
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
	"ddiff/storage"
)

// The exit codes. exitClasses describes each of them.
const (
	ExitDone        = 0
	exitUnexpected  = 1
	exitUsage       = 2
	ExitIncomplete  = 3
	exitRuntime     = 4
	exitLocked      = 5
	exitOutput      = 6
	ExitPrior       = 7
	exitNATS        = 9
	exitHung        = 10
	ExitInterrupted = 130
	ExitQuit        = 131
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
		{ExitDone, "everything is done", nil},
		{exitHung, "a stage of the worker hung; a new process can continue", []error{guard.ErrHung}},
		{ExitInterrupted, "interrupted; the same command resumes", []error{context.Canceled}},
		{exitUsage, "a wrong flag, campaign file or dataset", []error{
			errUsage, queue.ErrConfig, manifest.ErrNoDataset, manifest.ErrEmptyDataset, manifest.ErrBadList, dataset.ErrRefused, storage.ErrAddress,
			result.ErrVersions, board.ErrOtherCluster,
		}},
		{ExitPrior, "the prior, an operator or a bundle cannot be used", []error{
			ErrPrior, ErrOperator, prior.ErrCard, prior.ErrSize, prior.ErrGraph, modelfile.ErrModel, modelfile.ErrExternal, metric.ErrNetwork, enginecache.ErrPriorFile,
			check.ErrVectors, check.ErrInterface, check.ErrNotFinite, prior.ErrBundle, operator.ErrGradient, operator.ErrFile, infer.ErrNoGradient, infer.ErrShape, enginecache.ErrOperatorFile,
		}},
		{exitRuntime, "ONNX Runtime, or the execution provider, is missing or unusable", []error{
			onnxruntime.ErrRuntime, onnxruntime.ErrProvider, onnxruntime.ErrFallback, onnxruntime.ErrPrecision,
			install.ErrNotFound, install.ErrNoOpenVINO, install.ErrUnsupported, install.ErrChecksum, install.ErrWriters, install.ErrClientMissing, install.ErrDownload,
		}},
		{exitLocked, "another process uses the output", []error{storage.ErrLocked}},
		{exitOutput, "the output cannot be written, or the dataset's server does not answer", []error{
			storage.ErrNoSpace, storage.ErrReadOnly, storage.ErrConflict, storage.ErrUnavailable, storage.ErrAccess,
			storage.ErrNoBucket, storage.ErrCertificate, storage.ErrNoConditionalWrites, storage.ErrCorrupt, storage.ErrChanged, storage.ErrTooLarge, ErrReportFile, ErrRestoredFile, api.ErrStore,
		}},
		{exitNATS, "the NATS servers or the server cannot be used, or no coordinator answers", []error{
			archive.ErrNoLeader, board.ErrFlooded, gc.ErrNoIndex,
			queue.ErrUnreachable, queue.ErrAccess, queue.ErrCertificate, queue.ErrServerVersion, queue.ErrNoJetStream,
			queue.ErrUnavailable, queue.ErrNotReady, queue.ErrFull, queue.ErrLimits, queue.ErrClosed,
			api.ErrUnavailable,
		}},
		{ExitIncomplete, "the run ended, but some items failed or are dead; or an output does not match its record", []error{
			ErrIncomplete, ErrRejected, ErrCancelled, ErrMismatch, result.ErrArtifact,
		}},
		{ExitQuit, "ended by SIGQUIT, which prints what every goroutine does", nil},
		{exitUnexpected, "an unexpected error", nil},
	}
}

// wrongInputs are the errors of input that end a command with exitUsage, if no class of the table names the error: an
// unreadable file, for example, may be a prior.
func wrongInputs() []error {
	return []error{
		queue.ErrBadName, install.ErrEP, install.ErrClient, storage.ErrBadKey, manifest.ErrEmptyFile, dataset.ErrAddress, dataset.ErrNotFound,
		dataset.ErrTooLarge, dataset.ErrDenied, comparison.ErrNotComparable, result.ErrFilter, result.ErrScores, published.ErrPublished,
		selection.ErrUnknownRule, table.ErrColumn, table.ErrUnknownFormat, tune.ErrSides, tune.ErrNoFigure, tune.ErrRecord,
		method.ErrSetting, operator.ErrTask, operator.ErrShape, operator.ErrNoSVD, operator.ErrRange, prior.ErrTiling, parameter.ErrInvalid, solver.ErrConfig, regular.ErrKind,
		prior.ErrForm, regular.ErrTooLarge, shard.ErrMoved, item.ErrNewer, board.ErrRefused, queue.ErrNoRecord,
		api.ErrInvalid, api.ErrNotFound, api.ErrRefused, api.ErrNoToken, api.ErrDenied,
		raster.ErrFormat, raster.ErrTruncated, raster.ErrTooLarge, raster.ErrShape, raster.ErrNotFinite,
	}
}

// ExitCode returns the exit code of an error: the first class of the table that matches.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
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

// Message is the text of an error for people, one line for each of its causes.
func Message(err error) string {
	if errors.Is(err, guard.ErrHung) {
		return Printable(strings.ReplaceAll(err.Error(), "\n", "; ")) + "; if the machine is only slow, raise --stage-timeout"
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted; rerun the same command to resume"
	}
	text := err.Error()
	if strings.HasPrefix(text, "unknown command") {
		text, list, _ := strings.Cut(text, "\n\nDid you mean this?\n\t")
		name, _, _ := strings.Cut(strings.TrimPrefix(text, `unknown command "`), `"`)
		near := slices.DeleteFunc(strings.Split(strings.TrimRight(list, "\n"), "\n\t"), func(s string) bool {
			return s == "" || len(name) < 5 && s[0] != name[0] // half of the name is another
		})
		if len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ")
		}
		return Printable(text + "; see: ddiff --help")
	}
	return lines(err)
}

// NewExitCodesTopic is the help topic that lists the exit codes.
func NewExitCodesTopic() *cobra.Command {
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
