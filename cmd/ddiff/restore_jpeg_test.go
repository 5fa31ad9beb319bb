package main_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"path/filepath"
	"testing"
)

// jpegFile is a JPEG file of 20×12 pixels with the tables of a quality.
func jpegFile(t *testing.T, quality int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 20, 12))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7 % 251)
	}
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, img, &jpeg.Options{Quality: quality}))
	return buf.Bytes()
}

// TestRestoreJPEG restores files of different qualities in one call: each item has the quality of its file, and the same quality, if it is given,
// makes no difference.
func TestRestoreJPEG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, quality := range map[string]int{"a.jpg": 10, "b.jpg": 40} {
		write(t, filepath.Join(dir, name), jpegFile(t, quality))
	}
	base := []string{"restore", "--quiet", "--threads", "1", "--steps", "3", "--task", "jpeg", "--sigma", "0.005", "--force"}
	all, one := filepath.Join(dir, "all"), filepath.Join(dir, "one")
	wantCode(t, ddiff(t, append(base, dir, "--results", all)...), 0)
	found := map[string]string{}
	for id, r := range wantItems(t, all, 2) {
		quality := map[string]float64{"a.jpg": 10, "b.jpg": 40}[filepath.Base(r.Item.Name)]
		if r.Item.Params["quality"] != quality || r.Item.Params["subsampling"] != 2 {
			t.Errorf("%s: parameters %v", r.Item.Name, r.Item.Params)
		}
		found[filepath.Base(r.Item.Name)] = id
	}
	if img := picture(t, filepath.Join(dir, "a.restored.png")); img.Width != 20 || img.Height != 12 {
		t.Errorf("%d×%d pixels", img.Width, img.Height)
	}
	wantCode(t, ddiff(t, append(base, filepath.Join(dir, "a.jpg"), "--param", "quality=10", "--results", one)...), 0)
	for id := range wantItems(t, one, 1) {
		if id != found["a.jpg"] {
			t.Error("the stated quality of the file changes the item")
		}
	}
}

// A JPEG file of a grey picture, whose noise level methods take for larger, has none: 0 stays in the range of the setting.
func TestRestoreGreyJPEGWithoutNoise(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grey.jpg")
	img := image.NewGray(image.Rect(0, 0, 20, 12))
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7 % 251)
	}
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, img, nil))
	write(t, file, buf.Bytes())
	wantCode(t, ddiff(t, "restore", file, "--quiet", "--threads", "1", "--steps", "3", "--task", "jpeg", "--sigma", "0"), 0)
}
