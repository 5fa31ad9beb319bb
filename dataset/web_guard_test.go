package dataset

import (
	"errors"
	"net/http"
	"testing"
)

func TestControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network, address string
		valid            bool
	}{
		{"tcp4", "8.8.8.8:443", true}, {"tcp6", "[2606:4700::1111]:443", true},
		{"udp", "8.8.8.8:443", false}, {"tcp", "8.8.8.8", false}, {"tcp", "example.org:443", false}, {"tcp", "127.0.0.1:443", false},
	} {
		if err := (guard{}).control(c.network, c.address, nil); (err == nil) != c.valid || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s %s: %v", c.network, c.address, err)
		}
	}
}

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
