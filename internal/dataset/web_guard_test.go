package dataset

import (
	"errors"
	"net/http"
	"testing"
)

func TestContentRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		end, size int64
		valid     bool
	}{
		"bytes 5-9/10":   {10, 10, true},
		"bytes 5-5/6":    {6, 6, true},
		"bytes 5-8/100":  {9, 100, true},
		"bytes 4-9/10":   {},
		"bytes 6-9/10":   {},
		"bytes 5-4/10":   {},
		"bytes 5-9/9":    {},
		"bytes 5-9/*":    {},
		"bytes */10":     {},
		"bytes 5-9":      {},
		"bytes x-9/10":   {},
		"bytes 5-x/10":   {},
		"items 5-9/10":   {},
		"":               {},
		"bytes 5-9/10/2": {},
	} {
		end, size, err := contentRange(&http.Response{Header: http.Header{"Content-Range": {text}}}, 5)
		if want.valid != (err == nil) || end != want.end || size != want.size || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%q: end %d of %d, %v; want %+v", text, end, size, err, want)
		}
	}
	for etag, want := range map[string]string{`"a"`: `"a"`, `W/"a"`: "", "a": "", "": ""} {
		if got := strongETag(&http.Response{Header: http.Header{"Etag": {etag}}}); got != want {
			t.Errorf("ETag %s: strong ETag %q, want %q", etag, got, want)
		}
	}
}
