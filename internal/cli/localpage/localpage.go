// Package localpage serves the page of campaigns to the browser of this machine.
package localpage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"ddiff/coordinator/serve"
	"ddiff/internal/cli"
)

// Page is a page that is served until its context ends.
type Page struct {
	// Address is the page's URL.
	Address string
	ended   chan error
}

// Start serves the page over a backend on a port of localhost, or on a free one if port is 0. Nobody can change anything through it.
func Start(ctx context.Context, backend serve.Backend, port int) (*Page, error) {
	server, err := serve.New(serve.Config{
		Backend: backend, Kind: "output", Version: cli.Version(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("open the page: %w; choose another --port", err))
	}
	p := &Page{Address: "http://localhost:" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port) + "/", ended: make(chan error, 1)} //nolint:forcetypeassert // of a TCP listener
	go func() { p.ended <- server.Serve(ctx, listener, serve.TLS{}) }()
	return p, nil
}

// Wait returns when the page's context has ended, or with the error that ended the page before.
func (p *Page) Wait(ctx context.Context) error {
	err := <-p.ended
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return fmt.Errorf("serve the page: %w", err)
}

// Show prints the address, and opens it if out is a terminal of a machine with a browser.
func (p *Page) Show(ctx context.Context, out io.Writer) {
	fmt.Fprintf(out, "page: %s (until Ctrl-C)\n", p.Address)
	if cli.TerminalWidth(out) == 0 {
		return
	}
	var open []string
	switch {
	case runtime.GOOS == "darwin":
		open = []string{"open"}
	case runtime.GOOS == "windows":
		open = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		open = []string{"xdg-open"}
	default:
		return
	}
	_ = exec.CommandContext(ctx, open[0], append(open[1:], p.Address)...).Start() //nolint:gosec // the address is our own; without a browser the printed one remains
}
