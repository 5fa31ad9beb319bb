// Package failure gives errors their class where they are declared: what ended a command, which decides its exit code. Every package may import it.
package failure

import (
	"context"
	"errors"
)

// Class is what ended a command.
type Class int

// The classes, the one that counts first: an error may wrap errors of several.
const (
	// None: no error of the chain has a class.
	None Class = iota
	// Hung: a stage of the worker hung.
	Hung
	// Interrupted: a person ended the command. [context.Canceled] has this class.
	Interrupted
	// Usage: a wrong flag, campaign file or dataset.
	Usage
	// Prior: the prior, an operator or a bundle cannot be used.
	Prior
	// Runtime: ONNX Runtime, or an execution provider, is missing or unusable.
	Runtime
	// Locked: another process uses the output.
	Locked
	// Output: the output cannot be written, or the dataset's server does not answer.
	Output
	// Server: NATS or the server of campaigns cannot be used.
	Server
	// Incomplete: some items failed, or an output does not match its record.
	Incomplete
	// Input: a wrong value or file, where no other error of the chain says more. An unreadable file, for example, may be a prior.
	Input
)

// New returns a sentinel error of a class.
func New(class Class, text string) error { return &sentinel{class, text} }

type sentinel struct {
	class Class
	text  string
}

func (s *sentinel) Error() string { return s.text }

// Class is for Of. Other types of errors that have a class have this method too.
func (s *sentinel) Class() Class { return s.class }

// Of returns the first class among err and the errors that it wraps.
func Of(err error) Class {
	first := None
	if errors.Is(err, context.Canceled) {
		first = Interrupted
	}
	visit(err, func(c Class) {
		if first == None || c < first {
			first = c
		}
	})
	return first
}

func visit(err error, found func(Class)) {
	if e, ok := err.(interface{ Class() Class }); ok {
		found(e.Class())
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		visit(e.Unwrap(), found)
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			visit(wrapped, found)
		}
	}
}
