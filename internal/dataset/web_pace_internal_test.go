package dataset

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/manifest"
)

// paced is a server without ranges. It sends a piece of its answer, of unstated length, every tenth of a second.
type paced func(path string) (data io.Reader, piece int)

// RoundTrip implements http.RoundTripper.
func (p paced) RoundTrip(r *http.Request) (*http.Response, error) {
	data, piece := p(r.URL.Path)
	body := &pacedBody{r.Context(), data, make([]byte, piece), nil}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, Request: r}, nil
}

type pacedBody struct {
	call    context.Context
	data    io.Reader
	piece   []byte
	arrived []byte // the rest of the last piece
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	if len(b.arrived) == 0 {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-b.call.Done():
			return 0, b.call.Err()
		}
		n, err := io.ReadFull(b.data, b.piece)
		if n == 0 {
			return 0, err
		}
		b.arrived = b.piece[:n]
	}
	n := copy(p, b.arrived)
	b.arrived = b.arrived[n:]
	return n, nil
}

// sources returns Sources over the server. The caller is in a bubble of synctest, whose time stands still while it computes.
func (p paced) sources(t *testing.T, timeout time.Duration) *Sources {
	t.Helper()
	s, err := New(Config{AllowHTTP: true, Timeout: timeout, Attempts: 1, CacheBytes: -1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.web.client.HTTPClient.Transport = p
	return s
}

// readRows returns the number of a list's rows.
func readRows(t *testing.T, s *Sources, list string) (n int, err error) {
	t.Helper()
	for _, err := range s.Rows(t.Context(), manifest.Dataset{Path: list}, nil) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// endless has no end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestSlowServer: a server that sends a byte now and then keeps neither an image nor a list for its total limit, which is
// minutes for an image of unknown size and hours for a list.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 30 * time.Second
		s := paced(func(string) (io.Reader, int) { return endless{}, 1 }).sources(t, timeout)
		begin := time.Now()
		if _, err := s.Get(t.Context(), "http://example.org/a.png"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("image: %v", err)
		}
		if _, err := readRows(t, s, "http://example.org/list.csv"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("list: %v", err)
		}
		if took := time.Since(begin); took > 2*timeout+time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestTimeOfTransfers: the time limit of a transfer grows with the bytes that may be sent, stated or not: those before a range, which
// a server without ranges sends as well, and those of a list whose length is unknown.
func TestTimeOfTransfers(t *testing.T) {
	t.Parallel()
	const size, pieces = 2 << 20, 8
	member := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	archive := append(make([]byte, size), member...)
	list := []byte(strings.Repeat("https://example.org/a.png\n", 8<<10))
	synctest.Test(t, func(t *testing.T) {
		s := paced(func(path string) (io.Reader, int) {
			data := list
			if strings.HasSuffix(path, ".tar") {
				data = archive
			}
			return bytes.NewReader(data), len(data)/pieces + 1
		}).sources(t, 500*time.Millisecond) // an answer takes 900
		if data, err := s.Get(t.Context(), "tar+http://example.org/a.tar#name=a.npy&offset=2097152&size=2097152"); err != nil || !bytes.Equal(data, member) {
			t.Errorf("member: %d bytes, %v", len(data), err)
		}
		if n, err := readRows(t, s, "http://example.org/list.txt"); err != nil || n != 8<<10 {
			t.Errorf("list: %d rows, %v", n, err)
		}
	})
}
