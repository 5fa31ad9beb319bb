package testbed

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

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
