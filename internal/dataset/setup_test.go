package dataset_test

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/dataset"
	"ddiff/internal/s3test"
	"ddiff/manifest"
	"ddiff/storage"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// picture returns a small PNG that depends on n.
func picture(t testing.TB, n int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		img.Set(i%8, i/8, color.RGBA{uint8(n * 31), uint8(i * 4), uint8(n), 255})
	}
	var buf bytes.Buffer
	must(t, png.Encode(&buf, img))
	return buf.Bytes()
}

// sources returns Sources with a new cache and short waits.
func sources(t testing.TB, change func(*dataset.Config)) *dataset.Sources {
	t.Helper()
	cfg := dataset.Config{
		CacheDir: t.TempDir(), Timeout: 10 * time.Second, Attempts: 2,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Retry:  storage.RetryConfig{Base: time.Millisecond, Max: 10 * time.Millisecond},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := dataset.New(cfg)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// write creates a file below a folder and returns its path.
func write(t testing.TB, folder, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

// rows reads all rows of a dataset.
func rows(t testing.TB, s *dataset.Sources, d manifest.Dataset) (out []manifest.Row, skipped []string, err error) {
	t.Helper()
	for row, rowsErr := range s.Rows(t.Context(), d, func(e manifest.Skip) { skipped = append(skipped, e.Path) }) {
		if err != nil {
			t.Fatalf("row after the error %v", err)
		}
		if err = rowsErr; err != nil {
			continue
		}
		if row.Index != len(out) {
			t.Errorf("row %q has index %d, want %d", row.Name, row.Index, len(out))
		}
		out = append(out, row)
	}
	return out, skipped, err
}

// validRows reads all rows and images of a dataset without problems.
func validRows(t testing.TB, s *dataset.Sources, d manifest.Dataset) (names []string, images [][]byte) {
	t.Helper()
	all, _, err := rows(t, s, d)
	must(t, err)
	for _, row := range all {
		if row.Err != nil {
			t.Fatalf("row %q: %v", row.Name, row.Err)
		}
		data, err := s.Get(t.Context(), row.Image)
		if err != nil {
			t.Fatalf("get %s: %v", row.Image, err)
		}
		names, images = append(names, row.Name), append(images, data)
	}
	return names, images
}

// want compares names, and images with numbered pictures.
func want(t testing.TB, names []string, images [][]byte, wantNames string, numbers ...int) {
	t.Helper()
	if got := strings.Join(names, " "); got != wantNames {
		t.Errorf("names %q, want %q", got, wantNames)
	}
	if len(images) != len(numbers) {
		t.Fatalf("%d images, want %d", len(images), len(numbers))
	}
	for i, n := range numbers {
		if !bytes.Equal(images[i], picture(t, n)) {
			t.Errorf("image %d is not picture %d", i, n)
		}
	}
}

// webServer serves a folder over https. allow permits access to it. handle may answer a request and returns true then.
func webServer(t testing.TB, folder string, handle func(w http.ResponseWriter, r *http.Request) bool) (url string, allow func(*dataset.Config)) {
	t.Helper()
	files := http.FileServer(http.Dir(folder))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handle == nil || !handle(w, r) {
			if info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(r.URL.Path))); err == nil {
				w.Header().Set("ETag", fmt.Sprintf(`"%d-%d"`, info.Size(), info.ModTime().UnixNano()))
			}
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	ca := write(t, t.TempDir(), "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return server.URL, func(c *dataset.Config) {
		c.CAFile = ca
		c.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
}

// bucket starts an S3 server with a bucket. allow configures access to it.
func bucket(t testing.TB, objects map[string][]byte) (name string, server *s3test.Server, allow func(*dataset.Config)) {
	t.Helper()
	server = s3test.Start(t, s3test.Options{})
	name = server.Bucket(t)
	store, err := storage.OpenS3(t.Context(), server.Config(name))
	must(t, err)
	t.Cleanup(store.Close)
	for key, data := range objects {
		must(t, store.Put(t.Context(), key, data))
	}
	return name, server, func(c *dataset.Config) { c.S3 = server.Config("ignored-bucket") }
}

// member is a file in a tar file.
type memberFile struct {
	name string
	data []byte
}

// tarFile returns a tar file of the members and a directory.
func tarFile(t testing.TB, members ...memberFile) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o755}))
	for _, m := range members {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Size: int64(len(m.data)), Mode: 0o644, Format: tar.FormatPAX}
		must(t, w.WriteHeader(h))
		if _, err := w.Write(m.data); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return buf.Bytes()
}
