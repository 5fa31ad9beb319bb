package raster

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/png"
	"math/rand/v2"
	"testing"

	"ddiff/internal/restore/raster/metadata"
)

// plainFile returns a PNG file of rows with their filters: its pixels and more bytes are divided, and a chunk is between the parts if its kind has four letters.
func plainFile(t testing.TB, width, height int, rows, more []byte, divide int, kind string) []byte {
	t.Helper()
	var body bytes.Buffer
	z := zlib.NewWriter(&body)
	_, err := z.Write(rows)
	must(t, errors.Join(err, z.Close()))
	body.Write(more)
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(width)), uint32(height))
	out := metadata.AppendPNG([]byte(metadata.PNGMagic), metadata.PNGChunk{Kind: "IHDR", Data: append(header, 8, 2, 0, 0, 0)})
	out = metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IDAT", Data: body.Next(divide)})
	if len(kind) == 4 {
		out = metadata.AppendPNG(out, metadata.PNGChunk{Kind: kind, Data: more})
	}
	out = metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IDAT", Data: body.Bytes()})
	return metadata.AppendPNG(out, metadata.PNGChunk{Kind: "IEND"})
}

// checkPlain reports whether plainRGB reads a file, which then is what the standard library reads.
func checkPlain(t *testing.T, file []byte) bool {
	t.Helper()
	got := plainRGB(file)
	if got == nil {
		return false
	}
	img, err := png.Decode(bytes.NewReader(file))
	must(t, err)
	want, ok := img.(*image.RGBA)
	if !ok || got.Rect != want.Rect || !bytes.Equal(got.Pix, want.Pix) {
		t.Fatalf("%d bytes: the pixels are not those of the standard library, a %T", len(file), img)
	}
	return true
}

// TestPlainRGB: files of all filters are read as the standard library reads them, and what it refuses or reads otherwise is left to it.
func TestPlainRGB(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for width := 1; width < 40; width++ {
		const height = 25
		stride := 1 + 3*width
		rows := make([]byte, height*stride)
		for i := range rows {
			if rows[i] = byte(random.Uint32()); i%stride == 0 {
				rows[i] %= 5
			}
		}
		if !checkPlain(t, plainFile(t, width, height, rows, nil, random.IntN(100), "")) {
			t.Fatalf("width %d: not read", width)
		}
		wrong := bytes.Clone(rows)
		wrong[stride] = 5
		for name, file := range map[string][]byte{
			"filter":      plainFile(t, width, height, wrong, nil, 9, ""),
			"few rows":    plainFile(t, width, height+1, rows, nil, 9, ""),
			"many rows":   plainFile(t, width, height-1, rows, nil, 9, ""),
			"more bytes":  plainFile(t, width, height, rows, []byte{0}, 9, ""),
			"transparent": plainFile(t, width, height, rows, make([]byte, 6), 0, "tRNS"),
			"apart":       plainFile(t, width, height, rows, nil, 9, "tEXt"),
			"critical":    plainFile(t, width, height, rows, nil, 0, "ABCD"),
		} {
			if plainRGB(file) != nil {
				t.Errorf("%s: read", name)
			}
		}
	}
}

// TestIsPlain: a plain file has its pixels and nothing else.
func TestIsPlain(t *testing.T) {
	t.Parallel()
	rows := bytes.Repeat([]byte{4, 10, 20, 30, 250, 20, 30}, 5)
	plain := plainFile(t, 2, 5, rows, nil, 9, "")
	grey := bytes.Replace(plain, []byte{8, 2, 0, 0, 0}, []byte{8, 0, 0, 0, 0}, 1)
	noted, err := metadata.InsertPNG(plain, []metadata.PNGChunk{{Kind: "tEXt", Data: []byte("Author\x00me")}}, nil)
	must(t, err)
	for name, c := range map[string]struct {
		file []byte
		want bool
	}{
		"plain":        {plain, true},
		"text":         {noted, false},
		"more bytes":   {append(bytes.Clone(plain), 0), false},
		"few bytes":    {plain[:len(plain)-1], false},
		"other header": {grey, false},
		"16 bits":      {bytes.Replace(plain, []byte{8, 2, 0, 0, 0}, []byte{16, 2, 0, 0, 0}, 1), false},
		"no PNG file":  {[]byte("GIF89a"), false},
	} {
		if got := IsPlain(c.file); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzPlainRGB: what plainRGB reads of any bytes is what the standard library reads.
func FuzzPlainRGB(f *testing.F) {
	rows := bytes.Repeat([]byte{4, 10, 20, 30, 250, 20, 30}, 5)
	for _, kind := range []string{"", "tEXt", "tRNS", "IDAT", "IHDR"} {
		for _, more := range [][]byte{nil, {0}, make([]byte, 6)} {
			f.Add(plainFile(f, 2, 5, rows, more, 9, kind))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if header, err := png.DecodeConfig(bytes.NewReader(file)); err == nil && header.Width*header.Height < 1<<16 {
			checkPlain(t, file)
		}
	})
}
