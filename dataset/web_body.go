package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"ddiff/internal/regular"
)

// body reads an answer of at most limit bytes. It calls cancel after the time limit. check, if not nil, checks the beginning
// of the answer first. An answer without a length is copied to a file above the size of a block, since a buffer that
// grows needs several times its size.
func (w *web) body(
	call context.Context, cancel context.CancelCauseFunc, response *http.Response, limit int64, check Check,
) ([]byte, error) {
	size := response.ContentLength
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	}
	expected := size
	if size < 0 {
		expected = limit
	}
	defer w.limit(cancel, response, expected)()
	first := size // bytes in memory
	if size < 0 {
		first = min(limit+1, blockBytes)
	}
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(response.Body, regular.BeginningBytes))
	if err == nil && check != nil {
		if err := check(buf.Bytes(), size); err != nil {
			return nil, err
		}
	}
	if rest := first - int64(buf.Len()); err == nil && rest > 0 {
		buf.Grow(int(rest) + bytes.MinRead)
		_, err = buf.ReadFrom(io.LimitReader(response.Body, rest))
	}
	if err := transferError(call, err); err != nil {
		return nil, err
	}
	switch n := int64(buf.Len()); {
	case n > limit:
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", ErrTooLarge, limit)
	case size >= 0 || n < first:
		return buf.Bytes(), nil
	}
	f, err := w.copyToFile(call, io.MultiReader(&buf, response.Body), limit)
	if err != nil {
		return nil, err
	}
	defer f.close() //nolint:errcheck // its data is read
	return f.readRange(call, 0, f.size)
}

// spool copies the answer of a server without support for ranges to a file without a name.
func (w *web) spool(call context.Context, cancel context.CancelCauseFunc, response *http.Response) (object, error) {
	limit := w.cfg.SpoolBytes
	if response.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, and the server does not support ranges; at most %d are allowed", ErrTooLarge, response.ContentLength, limit)
	}
	expected := response.ContentLength
	if expected < 0 {
		expected = limit
	}
	defer w.limit(cancel, response, expected)()
	o, err := w.copyToFile(call, response.Body, limit)
	if err != nil {
		return nil, err
	}
	o.etag = sizedVersion(o.size, strongETag(response))
	return o, nil
}

// copyToFile copies at most limit bytes to a file without a name. Of a longer body the error is ErrTooLarge.
func (w *web) copyToFile(call context.Context, body io.Reader, limit int64) (_ *fileObject, err error) {
	if err := os.MkdirAll(w.cfg.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	f, err := os.CreateTemp(w.cfg.CacheDir, "spool-")
	if err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	o := &fileObject{file: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	// Remove the name: the file disappears with the process, even after a kill.
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	o.size, err = io.Copy(f, io.LimitReader(body, limit+1))
	switch err := transferError(call, err); {
	case err != nil:
		return nil, err
	case o.size > limit:
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", ErrTooLarge, limit)
	}
	return o, nil
}
