package main_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/tiff"
)

// texture is an image of a seeded texture.
func texture(size int) *image.RGBA {
	img, draw := image.NewRGBA(image.Rect(0, 0, size, size)), rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		if img.Pix[i] = uint8(draw.Uint32()); i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// grey is a sound PNG.
func grey(size int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, texture(size)); err != nil {
		panic(err) // to memory
	}
	return b.Bytes()
}

// badImages are images of each format, cut and changed at many places.
func badImages(t *testing.T) []badInput {
	t.Helper()
	var asJPEG, asTIFF bytes.Buffer
	must(t, jpeg.Encode(&asJPEG, texture(16), nil))
	must(t, tiff.Encode(&asTIFF, texture(16), nil))
	webp := func(name string) []byte {
		return read(t, filepath.Join("..", "..", "restore", "raster", "testdata", name))
	}
	var all []badInput
	add := func(name, ext string, data []byte, parts ...string) {
		file := "a." + ext
		all = append(all, failing("image/"+ext+" "+name, map[string][]byte{file: data}, append([]string{file}, parts...), file, "--task", "hdr"))
	}
	whole := map[string][]byte{
		"png": grey(16), "jpg": asJPEG.Bytes(), "tiff": asTIFF.Bytes(), "webp": webp("rgba_5x4_lossless.webp"),
	}
	for _, ext := range []string{"png", "jpg", "tiff", "webp"} {
		data := whole[ext]
		last := len(data) - 20
		for i := range 15 {
			n := last * i / 14
			if n == 0 {
				add("empty", ext, nil, "is an empty file")
				continue
			}
			add(fmt.Sprintf("cut at %d of %d", n, len(data)), ext, data[:n])
		}
		for _, other := range []string{"text", "\x00\x00\x00\x00", "%PDF-1.7", "GIF89a", "BM", "<svg/>", strings.Repeat("\x00", 100_000)} {
			add(fmt.Sprintf("with %.8q", other), ext, []byte(other), "not a PNG, JPEG, TIFF or WebP image")
		}
	}
	// Each byte of a PNG before its end counts: checksums cover the content.
	draw := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		data := bytes.Clone(whole["png"])
		at := draw.IntN(len(data) - 12)
		data[at] ^= 1 << draw.IntN(8)
		add(fmt.Sprintf("bit %d changed at %d", n, at), "png", data)
	}
	for _, at := range []int{0, 1} {
		for _, ext := range []string{"jpg", "tiff", "webp"} {
			data := bytes.Clone(whole[ext])
			data[at] ^= 0xff
			add(fmt.Sprintf("start changed at %d", at), ext, data)
		}
	}
	add("huge header", "png", hugeHeader(read(t, photograph("coffee"))), "30000x30000 pixels, the limit is")
	all = append(all, failing("image/name with control characters", map[string][]byte{"a\x1b[2J\nb\u202e.png": []byte("x")}, []string{"not a PNG"}, ".", "--task", "hdr"))
	for _, name := range []string{"nowhere.png", "nowhere", "a b.png", "\x1b[2J.png", "a\nb.png", "\u202egnp.png", "x\xff.png", strings.Repeat("n", 300) + ".png", strings.Repeat("n/", 3000) + ".png"} {
		all = append(all, refused(fmt.Sprintf("image/missing %.20q", name), nil, 2, []string{"ddiff: "}, name, "--task", "hdr"))
		all = append(all, refused(fmt.Sprintf("image/missing dataset %.20q", name), nil, 2, []string{"ddiff: "}, "--images", name, "--task", "hdr"))
	}
	return all
}
