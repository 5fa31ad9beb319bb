package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// maxUnstated limits an answer whose server does not state its length: a buffer that grows needs several times its size.
const maxUnstated = 16 << 20

// body reads an answer of at most limit bytes. check, if not nil, checks the beginning of the answer first.
func (w *web) body(r *answer, limit int64, check Check) ([]byte, error) {
	size := r.ContentLength
	switch {
	case size > limit:
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	case size < 0:
		limit = min(limit, maxUnstated)
	default:
		limit = size
	}
	r.limit(w.cfg.Timeout, limit)
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(r, regular.BeginningBytes))
	if err == nil && check != nil {
		if err := check(buf.Bytes(), size); err != nil {
			return nil, err
		}
	}
	if err == nil {
		buf.Grow(int(max(size-int64(buf.Len()), 0)) + bytes.MinRead)
		_, err = buf.ReadFrom(io.LimitReader(r, limit+1-int64(buf.Len())))
	}
	if err := r.failure(err); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are allowed from a server that does not state the length", ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}
