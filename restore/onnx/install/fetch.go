package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-retryablehttp"
)

const (
	maxRedirects    = 5
	maxBodyAttempts = 3 // of interrupted transfers
)

var (
	// errInterrupted: the transfer of a response's body ended early.
	errInterrupted = errors.New("the transfer was interrupted")
	// errRedirect: a redirect must not be followed; retries do not help.
	errRedirect = errors.New("redirect refused")
)

// open returns the path of the archive that from names: a local file, or a URL downloaded into dir. A URL must be https
// unless it is on this machine.
func open(ctx context.Context, from, dir string, accepted []archive, progress Progress) (string, error) {
	address, err := url.Parse(from)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" {
		info, err := os.Stat(from)
		if err != nil {
			return "", fmt.Errorf("--from: %w", err)
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("--from: %s is not a file", from)
		}
		return from, nil
	}
	if err := checkAddress(address); err != nil {
		return "", fmt.Errorf("--from: %w", err)
	}
	path := filepath.Join(dir, "archive")
	return path, fetch(ctx, address, path, accepted, progress)
}

// fetch downloads address to path. It refuses a file that has the size of none of the accepted archives.
func fetch(ctx context.Context, address *url.URL, path string, accepted []archive, progress Progress) error {
	client := newClient()
	defer client.HTTPClient.CloseIdleConnections()
	for attempt := 1; ; attempt++ {
		err := get(ctx, client, address, path, accepted, progress)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errInterrupted) || attempt == maxBodyAttempts {
			return fmt.Errorf("download %s: %w", address.Redacted(), err)
		}
	}
}

// newClient returns a client that retries transient errors and limits redirects to few and safe addresses.
func newClient() *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.HTTPClient.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("%w: more than %d", errRedirect, maxRedirects)
		}
		if err := checkAddress(request.URL); err != nil {
			return fmt.Errorf("%w: %w", errRedirect, err)
		}
		return nil
	}
	client.CheckRetry = func(ctx context.Context, response *http.Response, err error) (bool, error) {
		if errors.Is(err, errRedirect) {
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, response, err)
	}
	return client
}

// get downloads address to path. The client retries until there is a response; errInterrupted: its body ended early.
func get(ctx context.Context, client *retryablehttp.Client, address *url.URL, path string, accepted []archive,
	progress Progress,
) (err error) {
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity") // keep the archive's compression
	response, err := client.Do(request)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // the caller adds the address
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	if response.ContentLength >= 0 {
		if _, err := bySize(response.ContentLength, accepted); err != nil {
			return err
		}
	}
	largest := slices.MaxFunc(accepted, func(a, b archive) int { return cmp.Compare(a.Size, b.Size) })
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	progress.begin(StageDownload)
	n, err := io.Copy(file, contextReader{ctx, io.LimitReader(response.Body, largest.Size+1)})
	if err != nil {
		if _, writing := errors.AsType[*fs.PathError](err); writing || ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w after %d of up to %d bytes: %w", errInterrupted, n, largest.Size, err)
	}
	if n > largest.Size {
		return fmt.Errorf("%w: the file is larger than %s", ErrChecksum, largest.Name)
	}
	return nil
}

// bySize returns the index of the archive that has this size.
func bySize(size int64, accepted []archive) (int, error) {
	var expected []string
	for i, a := range accepted {
		if a.Size == size {
			return i, nil
		}
		expected = append(expected, fmt.Sprintf("%d of %s", a.Size, a.Name))
	}
	return 0, fmt.Errorf("%w: the file has %d bytes, want %s", ErrChecksum, size, strings.Join(expected, ", or "))
}

// checkAddress rejects unencrypted transfers from other machines.
func checkAddress(address *url.URL) error {
	host := address.Hostname()
	switch {
	case address.Scheme == "https" && host != "":
		return nil
	case address.Scheme == "http" && (host == "localhost" || net.ParseIP(host).IsLoopback()):
		return nil
	default:
		return fmt.Errorf("%s: only https is allowed, except on this machine", address.Redacted())
	}
}
