package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// failure is the panic by which an error ends a command.
type failure struct{ error }

// try returns v, unless the error ends the command: only functions that a command with [caught] calls may use try and check, in
// its own goroutine.
func try[T any](v T, err error) T {
	check(err)
	return v
}

// check ends the command at an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// caught returns the error that has ended a command. The command defers it first.
func caught(err *error) {
	switch fault := recover().(type) {
	case nil:
	case failure:
		if !errors.Is(*err, fault.error) {
			*err = errors.Join(fault.error, *err)
		}
	default:
		panic(fault)
	}
}

// directory returns the directory keep, or a temporary one that remove deletes.
func directory(keep, pattern string) (dir string, remove func() error, err error) {
	if keep != "" {
		return keep, func() error { return nil }, os.MkdirAll(keep, 0o755)
	}
	dir, err = os.MkdirTemp("", pattern)
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// TestMain runs the tests, or the command that the first argument names, with the flags that follow.
func TestMain(m *testing.M) {
	commands := map[string]func(ctx context.Context, args []string) error{
		"chaos": chaos, "demo": demo, "scale": scale, "scale-model": scaleModel, "telemetry": telemetryTest,
		"tell-the-time": func(context.Context, []string) error { tellTheTime(); return nil }, // for TestMoveClock
	}
	name, code := "test", 0
	var err error
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		name = os.Args[1]
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = commands[name](ctx, os.Args[2:])
		stop()
	} else {
		code, err = build(m)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		code = 1
	}
	os.Exit(code)
}
