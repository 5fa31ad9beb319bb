// Package cli has what the commands of several groups share: exit codes and the errors behind them, text and progress for terminals, the
// flags of the device, the datasets, the process and the stages of a worker, and the opening of priors, outputs and stores.
//
// It imports no package of cmd/ddiff and none below internal/cli. An error of a flag or an argument is made with [Usage]; every
// other error of a command wraps a sentinel with a class of package failure, or ends the command with the code of an unexpected error.
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

	"ddiff/internal/failure"
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

// exitClass is one exit code with the class of errors that leads to it.
type exitClass struct {
	code    int
	meaning string
	class   failure.Class
}

// exitClasses is the table of exit codes, in the order of the classes.
func exitClasses() []exitClass {
	return []exitClass{
		{ExitDone, "everything is done", failure.None},
		{exitHung, "a stage of the worker hung; a new process can continue", failure.Hung},
		{ExitInterrupted, "interrupted; the same command resumes", failure.Interrupted},
		{exitUsage, "a wrong flag, campaign file or dataset", failure.Usage},
		{ExitPrior, "the prior, an operator or a bundle cannot be used", failure.Prior},
		{exitRuntime, "ONNX Runtime, or the execution provider, is missing or unusable", failure.Runtime},
		{exitLocked, "another process uses the output", failure.Locked},
		{exitOutput, "the output cannot be written, or the dataset's server does not answer", failure.Output},
		{exitNATS, "the NATS servers or the server cannot be used, or no coordinator answers", failure.Server},
		{ExitIncomplete, "the run ended, but some items failed or are dead; or an output does not match its record", failure.Incomplete},
		{ExitQuit, "ended by SIGQUIT, which prints what every goroutine does", failure.None},
		{exitUnexpected, "an unexpected error", failure.None},
	}
}

// ExitCode returns the exit code of an error.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	class := failure.Of(err)
	if class == failure.Input || untypedUsage(err) {
		class = failure.Usage
	}
	for _, c := range exitClasses() {
		if c.class == class && class != failure.None {
			return c.code
		}
	}
	return exitUnexpected
}

// untypedUsage recognises the usage error of cobra that has no type.
func untypedUsage(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command")
}

// Message is the text of an error for people, one line for each of its causes.
func Message(err error) string {
	if failure.Of(err) == failure.Hung {
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

// Class is for failure.Of.
func (usageError) Class() failure.Class { return failure.Usage }

// Errors that end a command.
var (
	// ErrIncomplete: some items failed or are dead.
	ErrIncomplete = failure.New(failure.Incomplete, "some items could not be restored")
	// ErrRejected, ErrCancelled: the campaign ended without its items.
	ErrRejected  = failure.New(failure.Incomplete, "campaign was rejected")
	ErrCancelled = failure.New(failure.Incomplete, "campaign was cancelled")
	// ErrMismatch: an output differs from its passport, or from its replay.
	ErrMismatch = failure.New(failure.Incomplete, "mismatch")
	// ErrPrior: the prior cannot be read or used.
	ErrPrior = failure.New(failure.Prior, "prior")
	// ErrOperator: an operator or a metric cannot be read or used.
	ErrOperator = failure.New(failure.Prior, "operator")
	// ErrReportFile: the file of a report cannot be written.
	ErrReportFile = failure.New(failure.Output, "write report")
	// ErrRestoredFile: a restored picture cannot be written.
	ErrRestoredFile = failure.New(failure.Output, "write restored picture")
)
