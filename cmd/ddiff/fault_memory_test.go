package main_test

import (
	"archive/tar"
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"ddiff/storage/s3test"
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
	const noImage, tooLarge, remote = "not a PNG, JPEG, TIFF or WebP image", "too large", 250 << 20 // below the limit of remote files
	files := http.FileServer(http.Dir(dir))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { files.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	sparse("download", nil, remote)
	write(t, filepath.Join(dir, "list.csv"), []byte("image\n"+web.URL+"/download\n"))
	store := s3test.Start(t, s3test.Options{})
	bucket := store.Bucket(t)
	object := func(name string, beginning []byte) string {
		path := filepath.Join(store.Root, bucket, name)
		write(t, path, beginning)
		must(t, os.Truncate(path, remote))
		return "s3://" + bucket + "/" + name + "?endpoint=" + store.Endpoint
	}
	header := make([]byte, 512)
	shard := bytes.NewBuffer(nil)
	w := tar.NewWriter(shard)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.png", Size: remote, Mode: 0o644}))
	copy(header, shard.Bytes())
	for path, message := range map[string]string{
		sparse("zeros.png", nil, 900<<20):             noImage,
		sparse("tail.png", picture.Bytes(), 600<<20):  tooLarge,
		sparse("tail2.png", picture.Bytes(), 500<<20): tooLarge,
		server.URL + "/chunked.png":                   tooLarge,
		filepath.Join(dir, "list.csv"):                noImage,
		object("zeros.png", nil):                      noImage,
		object("tail.png", picture.Bytes()):           tooLarge,
		sparse("shard.tar", header, 512+remote+1024):  noImage,
	} {
		e := boundedIn(t, limit, []string{"AWS_ACCESS_KEY_ID=" + store.AccessKey, "AWS_SECRET_ACCESS_KEY=" + store.SecretKey},
			small("--images", path, "--task", "hdr", "--out", t.TempDir(), "--allow-endpoint", store.Endpoint, "--source-cache", "-1",
				"--allow-http", "--allow-network", "127.0.0.0/8")...)
		wantCode(t, e, 3)
		wantMessage(t, e, message)
	}
}
