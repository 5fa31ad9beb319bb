package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/hashicorp/go-retryablehttp"
)

// maxBodyAttempts is the number of attempts if the transfer of a response's body ends early.
const maxBodyAttempts = 3

// errInterrupted: the transfer of a response's body ended early.
var errInterrupted = errors.New("the transfer was interrupted")

// fetch downloads address to path. It refuses a file that is larger than all of the accepted archives. Their digests, which the caller
// verifies, make the transfer safe.
func fetch(ctx context.Context, address *url.URL, path string, accepted []archive) error {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	defer client.HTTPClient.CloseIdleConnections()
	for attempt := 1; ; attempt++ {
		err := get(ctx, client, address, path, accepted)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errInterrupted) || attempt == maxBodyAttempts || ctx.Err() != nil {
			return fmt.Errorf("download %s: %w", address.Redacted(), err)
		}
	}
}

// get downloads address to path. The client retries until there is a response; errInterrupted: its body ended early.
func get(ctx context.Context, client *retryablehttp.Client, address *url.URL, path string, accepted []archive) (err error) {
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
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	largest := slices.MaxFunc(accepted, func(a, b archive) int { return cmp.Compare(a.Size, b.Size) })
	n, err := io.Copy(file, io.LimitReader(response.Body, largest.Size+1))
	if err != nil {
		return fmt.Errorf("%w after %d of up to %d bytes: %w", errInterrupted, n, largest.Size, err)
	}
	if n > largest.Size {
		return fmt.Errorf("%w: the file is larger than %s", ErrChecksum, largest.Name)
	}
	return nil
}
