package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"ddiff/internal/regular"
)

// minRate is the least rate of a transfer in bytes per second, over Config.Timeout.
const minRate = 1 << 10

// errBroken: the transfer of an answer was interrupted. Such errors also wrap ErrUnavailable.
var errBroken = errors.New("transfer interrupted")

// errTimeout: the transfer exceeded its time limit.
var errTimeout = errors.New("timeout")

// answer is the answer to a request. It counts the bytes of the body that it reads.
type answer struct {
	*http.Response
	call   context.Context // of the request
	cancel context.CancelCauseFunc
	bytes  atomic.Int64
}

// Read implements io.Reader.
func (r *answer) Read(p []byte) (int, error) {
	n, err := r.Body.Read(p)
	r.bytes.Add(int64(n))
	return n, err
}

func (r *answer) close() {
	r.Body.Close() // opened for reading
	r.cancel(nil)
}

// limit ends a transfer of size bytes after its time limit, or when it is slower than minRate.
func (r *answer) limit(timeout time.Duration, size int64) {
	go func() {
		total := time.NewTimer(timeout + time.Duration(size>>20)*time.Second)
		defer total.Stop()
		pace := time.NewTicker(timeout)
		defer pace.Stop()
		for {
			select {
			case <-r.call.Done():
				return
			case <-total.C:
			case <-pace.C:
				if r.bytes.Swap(0) >= int64(minRate*timeout.Seconds()) {
					continue
				}
			}
			r.cancel(errTimeout)
			return
		}
	}()
}

// failure returns the error of a transfer, nil after success. A transfer whose context has ended always failed, since a server that
// detects the close may terminate a partial answer properly.
func (r *answer) failure(err error) error {
	switch {
	case errors.Is(context.Cause(r.call), errTimeout):
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, errBroken, errTimeout)
	case r.call.Err() != nil:
		return r.call.Err()
	case err != nil:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, errBroken, err)
	}
	return nil
}

// body reads an answer of at most limit bytes. check, if not nil, checks the beginning of the answer first. An answer without a length
// is copied to a file above the size of a block, since a buffer that grows needs several times its size.
func (w *web) body(r *answer, limit int64, check Check) ([]byte, error) {
	size := r.ContentLength
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	}
	expected, first := size, size // first: bytes in memory
	if size < 0 {
		expected, first = limit, min(limit+1, blockBytes)
	}
	r.limit(w.cfg.Timeout, expected)
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(r, regular.BeginningBytes))
	if err == nil && check != nil {
		if err := check(buf.Bytes(), size); err != nil {
			return nil, err
		}
	}
	if rest := first - int64(buf.Len()); err == nil && rest > 0 {
		buf.Grow(int(rest) + bytes.MinRead)
		_, err = buf.ReadFrom(io.LimitReader(r, rest))
	}
	if err := r.failure(err); err != nil {
		return nil, err
	}
	switch n := int64(buf.Len()); {
	case n > limit:
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", ErrTooLarge, limit)
	case size >= 0 || n < first:
		return buf.Bytes(), nil
	}
	f, err := w.copyToFile(r, io.MultiReader(&buf, r), limit)
	if err != nil {
		return nil, err
	}
	defer f.close() //nolint:errcheck // its data is read
	return f.readRange(r.call, 0, f.size)
}

// spool copies the answer of a server without support for ranges to a file without a name.
func (w *web) spool(r *answer) (object, error) {
	limit, expected := w.cfg.SpoolBytes, r.ContentLength
	if expected > limit {
		return nil, fmt.Errorf("%w: %d bytes, and the server does not support ranges; at most %d are allowed", ErrTooLarge, expected, limit)
	}
	if expected < 0 {
		expected = limit
	}
	r.limit(w.cfg.Timeout, expected)
	f, err := w.copyToFile(r, r, limit)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// copyToFile copies the answer r, of which from reads all bytes, to a file without a name.
func (w *web) copyToFile(r *answer, from io.Reader, limit int64) (_ *fileObject, err error) {
	if err := os.MkdirAll(w.cfg.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	f, err := os.CreateTemp(w.cfg.CacheDir, "spool-")
	if err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	// Remove the name: the file disappears with the process, even after a kill.
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("copy to the cache: %w", err)
	}
	size, err := io.Copy(f, io.LimitReader(from, limit+1))
	if err := r.failure(err); err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are allowed", ErrTooLarge, limit)
	}
	return &fileObject{file: f, size: size, etag: sizedVersion(size, strongETag(r.Response))}, nil
}
