// Command ddiff restores whole datasets of images with Dual Ascent Diffusion.
//
// This package has the root command, its help, completion and manual pages. The other commands are in one package for each group,
// which wire the parts; packages below internal/cli have what several groups share.
package main

import (
	"context"
	"io"
	"log" //nolint:depguard // to silence other packages
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log.SetOutput(io.Discard) // packages such as net/http write to it past --quiet
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process immediately
	}()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
