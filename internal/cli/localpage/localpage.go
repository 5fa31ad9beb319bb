// Package localpage serves the page of campaigns to the browser of one user of this machine. The address of the page has a secret, which other
// users do not know: it is never an argument of a process, and the files that have it have the mode 0600.
package localpage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/regular"
)

// Page is a page that is served until its context ends.
type Page struct {
	// Address is the page's URL with its secret.
	Address string
	ended   chan error
}

// Address returns the address of the page of a listener of this machine, with the secret of its user in the fragment, which browsers do not send.
func Address(scheme string, l net.Listener, secret string) string {
	return scheme + "://" + l.Addr().String() + "/#token=" + secret
}

// Start serves the page over a backend on a port of this machine, or on a free one if port is 0. Nobody can change anything through it.
func Start(ctx context.Context, backend serve.Backend, port int) (*Page, error) {
	secret := rand.Text()
	server, err := serve.New(serve.Config{
		Backend: backend, Secret: secret, Kind: "output", Version: cli.Version(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(api.Loopback, strconv.Itoa(port)))
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("open the page: %w; choose another --port", err))
	}
	p := &Page{Address: Address("http", listener, secret), ended: make(chan error, 1)}
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
	file, err := redirect(p.Address)
	if err != nil { // the printed address remains
		return
	}
	context.AfterFunc(ctx, func() { _ = os.Remove(file) })                             // of no use any more
	_ = exec.CommandContext(ctx, open[0], append(open[1:], "file://"+file)...).Start() //nolint:gosec // the file is our own; without a browser the printed address remains
}

// redirect writes a page that leads to an address, for its user alone: the arguments of a browser are visible to all.
func redirect(address string) (path string, err error) {
	dir, err := Folder()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "open-*.html") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>ddiff</title>\n", html.EscapeString(address))
	return f.Name(), errors.Join(err, f.Close())
}

// Folder creates and returns the folder of the secrets of this user's pages.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ddiff", "pages")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if !regular.IsPrivate(dir) {
		return "", fmt.Errorf("%s belongs to others, or others may write to it; remove their permissions", dir)
	}
	return dir, nil
}

// Store stores the secret of a server for the commands of its user, see [Secret], until remove is called.
func Store(l net.Listener, secret string) (path string, remove func(), err error) {
	dir, err := Folder()
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, fileOf(l.Addr().String()))
	if err := regular.Replace(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", nil, err
	}
	return path, func() { _ = os.Remove(path) }, nil
}

// fileOf is the name of the file with the secret of the server at an address.
func fileOf(hostPort string) string {
	return strings.NewReplacer(":", "_", "[", "", "]", "").Replace(hostPort)
}

// Secret returns the stored secret of the server of this user at an address such as http://127.0.0.1:8620, and "" of another server.
func Secret(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Port() == "" || !serve.Local(u.Host) {
		return ""
	}
	at := u.Host
	if u.Hostname() == "localhost" { // as the client connects
		at = net.JoinHostPort(api.Loopback, u.Port())
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	secret, err := regular.Read(filepath.Join(dir, "ddiff", "pages", fileOf(at)), regular.MaxConfigBytes)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(secret))
}
