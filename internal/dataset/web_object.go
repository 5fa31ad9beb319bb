package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

type webObject struct {
	web   *web
	a     Address
	size  int64
	etag  string // strong, or empty
	start int64  // of first
	first []byte // the first range that was requested, or all from a server without support for ranges
}

// maxWhole limits an object whose server does not support ranges: each read of a part transfers the whole, and several are in memory at once.
const maxWhole = 64 << 20

// open requests a range. If the server sends the complete resource instead, the object has it in memory.
func (w *web) open(ctx context.Context, a Address, offset, size int64) (object, error) {
	return retryRead(ctx, w.cfg.Attempts, errBroken, func() (object, error) { return w.openOnce(ctx, a, offset, size) })
}

func (w *web) openOnce(ctx context.Context, a Address, offset, size int64) (object, error) {
	r, err := w.request(ctx, http.MethodGet, a, offset, size, "")
	if err != nil {
		return nil, err
	}
	defer r.close()
	o := &webObject{web: w, a: a, etag: strongETag(r.Response), start: offset}
	switch r.StatusCode {
	case http.StatusOK:
		if o.first, err = w.body(r, min(w.cfg.MaxBytes, maxWhole), nil); errors.Is(err, ErrTooLarge) {
			err = fmt.Errorf("%w; copy the file, or use another server", err)
		}
		if err != nil {
			return nil, fmt.Errorf("server does not support ranges: %w", err)
		}
		o.start, o.size = 0, int64(len(o.first))
		return o, nil
	case http.StatusRequestedRangeNotSatisfiable:
		return &webObject{web: w, a: a}, nil // empty, or it ends before the range
	}
	var end int64
	if end, o.size, err = contentRange(r.Response, offset); err != nil {
		return nil, err
	}
	r.ContentLength = end - offset // unstated if it comes in chunks
	if o.first, err = w.body(r, size, nil); err != nil {
		return nil, err
	}
	return o, nil
}

// strongETag returns the strong ETag of an answer, empty without one.
func strongETag(response *http.Response) string {
	if etag := response.Header.Get("ETag"); strings.HasPrefix(etag, `"`) {
		return etag
	}
	return ""
}

// contentRange parses the Content-Range of a partial answer from offset. It returns the end of the range and the size
// of the resource.
func contentRange(response *http.Response, offset int64) (end, size int64, err error) {
	bad := fmt.Errorf("%w: server sends another range than requested", ErrRefused)
	text, ok := strings.CutPrefix(response.Header.Get("Content-Range"), "bytes ")
	span, total, ok2 := strings.Cut(text, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, bad
	}
	start, err1 := strconv.ParseInt(from, 10, 64)
	end, err2 := strconv.ParseInt(to, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if errors.Join(err1, err2, err3) != nil || start != offset || end < start || size <= end {
		return 0, 0, bad
	}
	return end + 1, size, nil
}

func (o *webObject) readRange(ctx context.Context, offset, size int64) ([]byte, error) {
	if size = min(size, o.size-offset); size <= 0 {
		return nil, nil
	}
	if from := offset - o.start; from >= 0 && from+size <= int64(len(o.first)) {
		return bytes.Clone(o.first[from : from+size]), nil
	}
	return retryRead(ctx, o.web.cfg.Attempts, errBroken, func() ([]byte, error) { return o.fetch(ctx, offset, size) })
}

func (o *webObject) fetch(ctx context.Context, offset, size int64) ([]byte, error) {
	r, err := o.web.request(ctx, http.MethodGet, o.a, offset, size, o.etag)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("%w: server no longer supports ranges", ErrChanged)
	}
	end, total, err := contentRange(r.Response, offset)
	if err != nil {
		return nil, err
	}
	if total != o.size || end != offset+size || o.etag != "" && strongETag(r.Response) != o.etag {
		return nil, ErrChanged
	}
	r.ContentLength = size
	return o.web.body(r, size, nil)
}

func (o *webObject) length() int64 { return o.size }

func (o *webObject) version() string { return sizedVersion(o.size, o.etag) }

func (*webObject) close() error { return nil }
