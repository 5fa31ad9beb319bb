package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

type webObject struct {
	web   *web
	a     Address
	size  int64
	etag  string // strong, or empty
	first []byte // the first block
}

// open requests the first block. If the server sends the complete resource instead, open copies it to a file.
func (w *web) open(ctx context.Context, a Address) (object, error) {
	return retryRead(ctx, w.cfg.Attempts, errBroken, func() (object, error) { return w.openOnce(ctx, a) })
}

func (w *web) openOnce(ctx context.Context, a Address) (object, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := w.request(call, http.MethodGet, a, 0, blockBytes, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // opened for reading
	switch response.StatusCode {
	case http.StatusOK:
		return w.spool(call, cancel, response)
	case http.StatusRequestedRangeNotSatisfiable:
		return &webObject{web: w, a: a}, nil // empty
	}
	o := &webObject{web: w, a: a, etag: strongETag(response)}
	if _, o.size, err = contentRange(response, 0); err != nil {
		return nil, err
	}
	if o.first, err = w.body(call, cancel, response, blockBytes, nil); err != nil {
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
	if offset+size <= int64(len(o.first)) {
		return append([]byte{}, o.first[offset:offset+size]...), nil
	}
	return retryRead(ctx, o.web.cfg.Attempts, errBroken, func() ([]byte, error) { return o.fetch(ctx, offset, size) })
}

func (o *webObject) fetch(ctx context.Context, offset, size int64) ([]byte, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := o.web.request(call, http.MethodGet, o.a, offset, size, o.etag)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // opened for reading
	if response.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("%w: server no longer supports ranges", ErrChanged)
	}
	end, total, err := contentRange(response, offset)
	if err != nil {
		return nil, err
	}
	if total != o.size || end != offset+size || o.etag != "" && strongETag(response) != o.etag {
		return nil, ErrChanged
	}
	return o.web.body(call, cancel, response, size, nil)
}

// part reads a range of a resource. It discards the bytes before the range if the server does not support ranges.
func (w *web) part(ctx context.Context, a Address, offset, size int64) ([]byte, error) {
	return retryRead(ctx, w.cfg.Attempts, errBroken, func() ([]byte, error) { return w.fetchPart(ctx, a, offset, size) })
}

func (w *web) fetchPart(ctx context.Context, a Address, offset, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := w.request(call, http.MethodGet, a, offset, size, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // opened for reading
	switch response.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return nil, nil // the range begins after the end
	case http.StatusPartialContent:
		if _, _, err := contentRange(response, offset); err != nil {
			return nil, err
		}
		return w.body(call, cancel, response, size, nil)
	}
	if offset+size > w.cfg.SpoolBytes {
		return nil, fmt.Errorf("%w: server does not support ranges, and the range begins at byte %d", ErrTooLarge, offset)
	}
	defer w.limit(cancel, response, offset+size)()
	var data []byte
	if _, err = io.CopyN(io.Discard, response.Body, offset); err == nil {
		data, err = io.ReadAll(io.LimitReader(response.Body, size))
	}
	if errors.Is(err, io.EOF) {
		err = nil // the caller checks the length
	}
	return data, transferError(call, err)
}

func (o *webObject) length() int64 { return o.size }

func (o *webObject) version() string { return sizedVersion(o.size, o.etag) }

func (*webObject) close() error { return nil }
