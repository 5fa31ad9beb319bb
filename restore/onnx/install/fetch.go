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

// fetch downloads address to path. The client retries until there is a response. fetch refuses a file that is larger than all of the accepted
// archives. Their digests, which the caller verifies, make the transfer safe.
func fetch(ctx context.Context, address *url.URL, path string, accepted []archive) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("download %s: %w", address.Redacted(), err)
		}
	}()
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	defer client.HTTPClient.CloseIdleConnections()
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity") // keep the archive's compression
	response, err := client.Do(request)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err // without the address
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
		return fmt.Errorf("the transfer was interrupted after %d of up to %d bytes: %w", n, largest.Size, err)
	}
	if n > largest.Size {
		return fmt.Errorf("%w: the file is larger than %s", ErrChecksum, largest.Name)
	}
	return nil
}
