package main_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestLargeImages: files that are no image, images with other data behind their end and answers without a length are refused
// by their first bytes or their size, without memory of their size.
func TestLargeImages(t *testing.T) {
	t.Parallel()
	const limit = 250 // MiB; the program alone takes about 100
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 64))))
	dir := t.TempDir()
	sparse := func(name string, beginning []byte, size int64) string {
		path := filepath.Join(dir, name)
		write(t, path, beginning)
		must(t, os.Truncate(path, size))
		return path
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		copy(block, picture.Bytes())
		for range 600 {
			if _, err := w.Write(block); err != nil {
				return // refused
			}
			clear(block)
		}
	}))
	t.Cleanup(server.Close)
	for path, message := range map[string]string{
		sparse("zeros.png", nil, 900<<20):            "not a PNG, JPEG, TIFF or WebP image",
		sparse("tail.png", picture.Bytes(), 600<<20): "too large",
		server.URL + "/chunked.png":                  "too large",
	} {
		e := boundedIn(t, limit, nil, small("--images", path, "--task", "hdr", "--out", t.TempDir(),
			"--allow-http", "--allow-network", "127.0.0.0/8")...)
		wantCode(t, e, 3)
		wantMessage(t, e, message)
	}
}
