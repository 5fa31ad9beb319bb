package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/tiff"

	"ddiff/internal/restore/raster"
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
		return read(t, filepath.Join("..", "..", "internal", "restore", "raster", "testdata", name))
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
		add("with a PDF document", ext, []byte("%PDF-1.7"), "it is a PDF document; save its picture first")
		for _, other := range []string{"text", "\x00\x00\x00\x00", "<svg/>", strings.Repeat("\x00", 100_000)} {
			add(fmt.Sprintf("with %.8q", other), ext, []byte(other), "not a PNG, JPEG, TIFF, WebP, BMP or GIF image")
		}
		for _, signature := range []string{"GIF89a", "BM"} {
			add("with "+signature+" alone", ext, []byte(signature))
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
	all = append(all, failing("image/name with control characters", map[string][]byte{"x/a\x1b[2J\nb\u202e.png": []byte("x")}, []string{"not a PNG"}, "x", "--task", "hdr"))
	for _, name := range []string{"nowhere.png", "nowhere", "a b.png", "\x1b[2J.png", "a\nb.png", "\u202egnp.png", "x\xff.png", strings.Repeat("n", 300) + ".png", strings.Repeat("n/", 3000) + ".png"} {
		all = append(all, refused(fmt.Sprintf("image/missing %.20q", name), nil, 2, []string{"ddiff: "}, name, "--task", "hdr"))
		all = append(all, refused(fmt.Sprintf("image/missing dataset %.20q", name), nil, 2, []string{"ddiff: "}, "--images", name, "--task", "hdr"))
	}
	return all
}

// npyFile is a NumPy file with any header.
func npyFile(header string, body []byte) []byte {
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(data, header...), body...)
}

// badArrays are measurements, masks and kernels that cannot be used.
func badArrays(t *testing.T) []badInput {
	t.Helper()
	var all []badInput
	add := func(name string, data []byte, columns ...string) {
		for _, column := range columns {
			task := map[string]string{"measurement": "hdr", "mask": "inpaint_random", "kernel": "motion_deblur"}[column]
			all = append(all, failing("array/"+column+" "+name, map[string][]byte{"l.csv": []byte("image," + column + "\na.png,y.npy\n"), "a.png": grey(16), "y.npy": data},
				[]string{"(" + task + "): "}, "--images", "l.csv", "--task", task))
		}
	}
	every := []string{"measurement", "mask", "kernel"}
	values := make([]float32, 3*16*16)
	for i := range values {
		values[i] = 0.5
	}
	whole, err := raster.EncodeNPY([]int{3, 16, 16}, values)
	must(t, err)
	for _, n := range []int{0, 1, 5, 6, 8, 9, 20, 60, 127, 128, 129, 1000, len(whole) - 1} {
		add(fmt.Sprintf("cut at %d", n), whole[:n], every...)
	}
	add("longer", append(whole[:len(whole):len(whole)], 0), every...)
	for _, shape := range []string{"()", "(0,)", "(3,16,16,1)", "(-3,16,16)", "(3,16)", "(3,1000000,1000000)", "(9999999999999999999,)", "(3,16,16.5)", "(3,'x',16)", "3", "[3,16,16]", "(3,4294967296,4294967296)", strings.Repeat("(", 200)} {
		add("shape "+shape[:min(20, len(shape))], npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': "+shape+", }", whole[128:]), every...)
	}
	for _, kind := range []string{"<c8", "|O", "<U4", "|S4", ">x4", "f", "", "<f16", "<M8[s]"} {
		add("type "+kind, npyFile("{'descr': '"+kind+"', 'fortran_order': False, 'shape': (3, 16, 16), }", whole[128:]), "measurement", "mask")
	}
	for _, header := range []string{"", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 16, 16)}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16)} x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16), 'x': 1}", "{\x1b[2J}", "__import__('os')"} {
		add(fmt.Sprintf("header %q", header), npyFile(header, whole[128:]), "measurement", "kernel")
	}
	for name, x := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1)), "-infinity": float32(math.Inf(-1))} {
		changed := append([]byte(nil), whole...)
		binary.LittleEndian.PutUint32(changed[128+400:], math.Float32bits(x))
		add(name, changed, every...)
	}
	return all
}
