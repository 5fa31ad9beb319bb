// Command ddiff restores whole datasets of images with Dual Ascent Diffusion.
//
// This package has the root command, its help, completion and manual pages. The other commands are in one package for each group,
// which wire the parts; packages below internal/cli have what several groups share.
//
// A command is one file in the package of its group and one name in the Commands of that package, or its NewCommand; root.go joins the
// groups under the headings of the help. docs/scripting.md lists it, `go test ./cmd/ddiff -run 'TestHelp|TestFlags' -update` stores its help and flags, and
// bad_flags_test.go names it.
package main

import (
	"context"
	"fmt"
	"io"
	"log" //nolint:depguard // to silence other packages
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"ddiff/internal/cli"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/trial"
	"ddiff/restore/operator"
)

func main() {
	log.SetOutput(io.Discard) // packages such as net/http write to it past --quiet
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	stderr := cli.NewOutput(os.Stderr)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process immediately
		if cli.TerminalWidth(stderr) > 0 {
			cli.StatusLine(stderr)("")
			fmt.Fprintln(stderr, "stopping; Ctrl-C again ends at once")
		}
	}()
	go endOnQuit()
	if len(os.Args) > 1 && os.Args[1] == trial.Arg {
		os.Exit(trial.Serve(ctx, os.Args[2:], os.Stdin, os.Stdout, map[string]trial.Check{"operator": operator.Check, "prior": prior.Check, "metric": metric.Try}))
	}
	os.Exit(execute(ctx, os.Args[1:], cli.NewOutput(os.Stdout), stderr))
}

// endOnQuit ends the process at SIGQUIT with the stacks of all goroutines. Go's own exit code is that of a wrong flag.
func endOnQuit() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	<-quit
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) // the process ends in any case
	os.Exit(cli.ExitQuit)
}
