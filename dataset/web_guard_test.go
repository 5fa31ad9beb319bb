package dataset

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func parseURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	must(t, err)
	return u
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	g := guard{hosts: []string{"example.org", "10.7.1.1", "127.0.0.1"}, networks: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")}}
	open := g
	open.http = true
	for _, c := range []struct {
		guard guard
		text  string
		words string // empty: it is allowed
	}{
		{g, "https://example.org/x", ""},
		{g, "https://10.7.1.1/x", ""},
		{open, "http://example.org/x", ""},
		{g, "http://example.org/x", "not encrypted"},
		{open, "ftp://example.org/x", `scheme "ftp"`},
		{g, "https://u:p@example.org/x", "credentials"},
		{g, "https://example.com/x", `host "example.com" is not allowed`},
		{g, "https://127.0.0.1/x", "127.0.0.1 is not a public address"},
	} {
		err := c.guard.checkURL(parseURL(t, c.text))
		if c.words == "" && err != nil || c.words != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.words)
		}
	}
}

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

// TestRedirect: five redirects are allowed, to allowed servers with the first scheme, without the address before.
func TestRedirect(t *testing.T) {
	t.Parallel()
	g := guard{http: true, hosts: []string{"example.org"}}
	for _, c := range []struct {
		from, to string
		before   int
		words    string // empty: it is allowed
	}{
		{"https://example.org/?signature=x", "https://example.org/b", 1, ""},
		{"https://example.org/", "https://example.org/b", 5, ""},
		{"https://example.org/", "https://example.org/b", 6, "more than 5 redirects"},
		{"https://example.org/", "http://example.org/b", 1, "redirect from https to http"},
		{"http://example.org/", "https://example.org/b", 1, "redirect from http to https"},
		{"https://example.org/", "https://example.com/b", 1, `redirect: refused: host "example.com"`},
	} {
		request := &http.Request{URL: parseURL(t, c.to), Header: http.Header{"Referer": {c.from}}}
		via := make([]*http.Request, c.before)
		for i := range via {
			via[i] = &http.Request{URL: parseURL(t, c.from)}
		}
		err := g.redirect(request, via)
		if c.words == "" && (err != nil || request.Header.Get("Referer") != "") {
			t.Errorf("%s to %s: %v, referer %q", c.from, c.to, err, request.Header.Get("Referer"))
		}
		if c.words != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s to %s after %d: %v, want %q", c.from, c.to, c.before, err, c.words)
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
