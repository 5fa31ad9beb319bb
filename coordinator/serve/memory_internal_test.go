package serve

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// oneOutput is a backend with the output of one campaign.
type oneOutput struct {
	Backend
	output result.Output
}

// Output implements Backend.
func (b oneOutput) Output(context.Context, string) (result.Output, error) { return b.output, nil }

// TestMemoryOfFiles: answers with files and thumbnails wait for memory that others have, and return their own.
func TestMemoryOfFiles(t *testing.T) {
	t.Parallel()
	item := strings.Repeat("a", 64)
	store := reporttest.NewMemory()
	var picture bytes.Buffer
	reporttest.Must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 32))))
	store.Files[manifest.ItemKey(item, "restored.png")] = picture.Bytes()
	store.Files["index.html"] = []byte("<p>")
	s, err := New(Config{
		Backend: oneOutput{output: result.Output{Store: store}}, Kind: "output", Logger: slog.New(slog.DiscardHandler), AnswerLimit: 100 * time.Millisecond,
	})
	reporttest.Must(t, err)
	status := func(path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+prefix+path, nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	file := "/campaigns/one/items/" + item + "/files/restored.png"
	for _, path := range []string{"/campaigns/one/report/index.html", file, file + "?width=16"} {
		if got := status(path); got != http.StatusOK || !s.memory.TryAcquire(maxMemory) {
			t.Fatalf("%s: %d; or it keeps memory", path, got)
		}
		if got := status(path); got != http.StatusServiceUnavailable {
			t.Errorf("%s without memory: %d", path, got)
		}
		s.memory.Release(maxMemory)
	}
	reporttest.Must(t, s.memory.Acquire(t.Context(), maxMemory))
	for _, path := range []string{"/campaigns/one/dead", "/compare?a=one&b=one"} {
		if got := status(path); got != http.StatusServiceUnavailable {
			t.Errorf("%s without memory: %d", path, got)
		}
	}
	s.memory.Release(maxMemory)
	if !s.pixels.TryAcquire(maxThumbnail) || status(file) != http.StatusOK || status(file+"?width=16") != http.StatusServiceUnavailable {
		t.Error("a thumbnail beside many pixels, or a file")
	}
	if err := s.reserve(t.Context(), maxMemory+1); Problem(err).Status != http.StatusConflict {
		t.Errorf("a file that is too large: %v", err)
	}
}
