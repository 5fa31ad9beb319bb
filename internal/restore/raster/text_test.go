package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/raster/metadata"
)

// picture returns a small PNG file.
func picture(t testing.TB) []byte {
	t.Helper()
	img := New(3, 6, 8)
	for i := range img.Pix {
		img.Pix[i] = float32(level8(uint8(7 * i)))
	}
	file, err := EncodePNG(img)
	must(t, err)
	return file
}

func withText(t testing.TB, file []byte, keyword, text string) []byte {
	t.Helper()
	out, err := SetPNGText(file, keyword, text)
	must(t, err)
	return out
}

// kinds returns the types of a file's chunks.
func kinds(t *testing.T, file []byte) []string {
	t.Helper()
	var out []string
	for c, err := range metadata.PNGChunks(file) {
		must(t, err)
		out = append(out, c.Kind)
	}
	return out
}

func TestPNGText(t *testing.T) {
	t.Parallel()
	file := picture(t)
	if _, found, err := PNGText(file, "ddiff"); found || err != nil {
		t.Errorf("a file without text: %v, %v", found, err)
	}
	for _, text := range []string{"", "{}", "grün 漢字 🙂\nline 2", strings.Repeat("x", 1<<20)} {
		with := withText(t, file, "ddiff", text)
		if got, found, err := PNGText(with, "ddiff"); got != text || !found || err != nil {
			t.Errorf("%.20q decoded as %.20q, %v, %v", text, got, found, err)
		}
		if again := withText(t, file, "ddiff", text); !bytes.Equal(with, again) {
			t.Errorf("%.20q: two files of one text differ", text)
		}
		if got := kinds(t, with); !slices.Equal(got[:2], []string{"IHDR", "iTXt"}) || len(got) != len(kinds(t, file))+1 {
			t.Errorf("%.20q: the chunks are %v", text, got)
		}
		if _, found, err := PNGText(with, "ddif"); found || err != nil {
			t.Errorf("another keyword: %v, %v", found, err)
		}
	}

	both := withText(t, withText(t, file, "one", "1"), "two", "2")
	replaced := withText(t, both, "one", "other")
	for keyword, want := range map[string]string{"one": "other", "two": "2"} {
		if got, found, err := PNGText(replaced, keyword); got != want || !found || err != nil {
			t.Errorf("%s is %q, %v, %v; want %q", keyword, got, found, err, want)
		}
	}
	if n := len(kinds(t, replaced)); n != len(kinds(t, both)) {
		t.Errorf("after replacing a text: %d text chunks of %d", n, len(kinds(t, both)))
	}
	if got := withText(t, append(slices.Clone(file), "rest"...), "one", "1"); !bytes.Equal(got, withText(t, file, "one", "1")) {
		t.Error("SetPNGText kept data after the last chunk")
	}
}

// TestPNGTextForeignDecoders reads the pixels and the text with other programs.
func TestPNGTextForeignDecoders(t *testing.T) {
	t.Parallel()
	file, text := picture(t), `{"name":"grün 漢字"}`
	with := withText(t, file, "ddiff", text)
	before, err := png.Decode(bytes.NewReader(file))
	must(t, err)
	after, err := png.Decode(bytes.NewReader(with))
	must(t, err)
	for y := range 6 {
		for x := range 8 {
			if before.At(x, y) != after.At(x, y) {
				t.Fatalf("image/png: the pixel at %d, %d changed", x, y)
			}
		}
	}

	python := os.Getenv("PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	path := filepath.Join(t.TempDir(), "text.png")
	must(t, os.WriteFile(path, with, 0o644))
	const script = `
import sys
try:
    from PIL import Image
except ImportError as e:
    print(e)
    sys.exit(77)
img = Image.open(sys.argv[1])
img.load()
sys.stdout.buffer.write(img.text["ddiff"].encode() + b"\n" + img.convert("RGB").tobytes())
`
	out, err := exec.CommandContext(t.Context(), python, "-c", script, path).Output()
	var ended *exec.ExitError
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || (errors.As(err, &ended) && ended.ExitCode() == 77) {
		t.Skipf("needs Pillow for %s (Debian: apt-get install python3-pil): %v %s", python, err, out)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", python, err, ended.Stderr)
	}
	img, err := Decode(file)
	must(t, err)
	samples, err := RGB8(img)
	must(t, err)
	if want := append([]byte(text+"\n"), samples...); !bytes.Equal(out, want) {
		t.Errorf("Pillow reads %.60q, want %.60q", out, want)
	}
}

// chunk returns a chunk with the given length and checksum.
func chunk(length uint32, kind, body string, flip uint32) string {
	out := binary.BigEndian.AppendUint32(nil, length)
	out = append(append(out, kind...), body...)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:])^flip))
}

// validChunk returns a valid chunk.
func validChunk(kind, body string) string { return chunk(uint32(len(body)), kind, body, 0) }

// TestPNGTextHostile reads invalid files.
func TestPNGTextHostile(t *testing.T) {
	t.Parallel()
	header := validChunk("IHDR", "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00")
	end := validChunk("IEND", "")
	body := "ddiff\x00\x00\x00\x00\x00text"
	good := validChunk("iTXt", body)
	if text, found, err := PNGText([]byte(metadata.PNGMagic+header+good+end), "ddiff"); text != "text" || !found || err != nil {
		t.Fatalf("the sound file: %q, %v, %v", text, found, err)
	}
	// Other programs write language and translated keyword, and a chunk at the end.
	if text, found, err := PNGText([]byte(metadata.PNGMagic+header+validChunk("iTXt", "ddiff\x00\x00\x00de\x00wort\x00text")+end+"rest"), "ddiff"); text != "text" || !found || err != nil {
		t.Errorf("with a language: %q, %v, %v", text, found, err)
	}
	if _, err := SetPNGText([]byte(metadata.PNGMagic+header+good), "ddiff", "x"); !errors.Is(err, ErrTruncated) {
		t.Errorf("writing to a truncated file: error %v", err)
	}
	for _, c := range []struct {
		name, file string
		want       error
		message    string
	}{
		{"empty", "", ErrFormat, "not a PNG file"},
		{"other file", "GIF89a", ErrFormat, "not a PNG file"},
		{"nothing but the signature", metadata.PNGMagic, ErrTruncated, "ends before IEND"},
		{"no header", metadata.PNGMagic + good + end, ErrFormat, `begins with the chunk "iTXt"`},
		{"two headers", metadata.PNGMagic + header + header + good + end, ErrFormat, "second header"},
		{"no end", metadata.PNGMagic + header + good, ErrTruncated, "ends before IEND"},
		{"cut in a chunk", metadata.PNGMagic + header + good[:len(good)-5], ErrTruncated, `in the chunk "iTXt" of 14 bytes`},
		{"cut in a length", metadata.PNGMagic + header + good + "\x00\x00", ErrTruncated, "ends before IEND"},
		{"huge length", metadata.PNGMagic + header + chunk(0xffffffff, "iTXt", body, 0) + end, ErrTruncated, "of 4294967295 bytes"},
		{"length over the end", metadata.PNGMagic + header + chunk(uint32(len(body)+len(end)+1), "iTXt", body, 0) + end, ErrTruncated, `in the chunk "iTXt"`},
		{"wrong checksum", metadata.PNGMagic + header + chunk(uint32(len(body)), "iTXt", body, 1) + end, ErrFormat, `checksum of the chunk "iTXt" is wrong`},
		{"wrong checksum elsewhere", metadata.PNGMagic + header + good + chunk(1, "IDAT", "x", 1) + end, ErrFormat, `checksum of the chunk "IDAT" is wrong`},
		{"two texts", metadata.PNGMagic + header + good + good + end, ErrFormat, "two chunks"},
		{"only a keyword", metadata.PNGMagic + header + validChunk("iTXt", "ddiff\x00") + end, ErrFormat, "compressed, or its chunk ends before it"},
		{"no language", metadata.PNGMagic + header + validChunk("iTXt", "ddiff\x00\x00\x00text") + end, ErrFormat, "compressed, or its chunk ends before it"},
		{"no translated keyword", metadata.PNGMagic + header + validChunk("iTXt", "ddiff\x00\x00\x00\x00text") + end, ErrFormat, "compressed, or its chunk ends before it"},
		{"compressed", metadata.PNGMagic + header + validChunk("iTXt", "ddiff\x00\x01\x00\x00\x00text") + end, ErrFormat, "compressed, or its chunk ends before it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, found, err := PNGText([]byte(c.file), "ddiff")
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) || text != "" || found {
				t.Errorf("%q, %v, error %v; want %v with %q", text, found, err, c.want, c.message)
			}
		})
	}
}

func TestRGB8(t *testing.T) {
	t.Parallel()
	img := New(3, 1, 2)
	copy(img.Pix, []float32{-1, 1, 0, -2, 2, float32(level8(7))})
	got, err := RGB8(img)
	if want := []byte{0, 128, 255, 255, 0, 7}; err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	// The samples do not depend on the encoding.
	area := image.Rect(0, 0, 5, 4)
	at := func(x, y int) color.Color { return color.NRGBA{uint8(50 * x), uint8(60 * y), 9, 255} }
	var samples [][]byte
	for _, m := range []image.Image{filled(image.NewNRGBA(area), at), filled(image.NewRGBA(area), at), filled(image.NewNRGBA64(area), at)} {
		for _, file := range [][]byte{encodePNG(t, m), encodeTIFF(t, m)} {
			img, err := Decode(file)
			must(t, err)
			rgb, err := RGB8(img)
			must(t, err)
			if samples = append(samples, rgb); !bytes.Equal(rgb, samples[0]) {
				t.Errorf("%T: other samples", m)
			}
		}
	}
	grey := New(1, 1, 2)
	grey.Pix[1] = 1
	if got, err := RGB8(grey); err != nil || !bytes.Equal(got, []byte{128, 128, 128, 255, 255, 255}) {
		t.Errorf("grey: %v, %v", got, err)
	}
	for _, bad := range []*Image{New(2, 1, 1), {Channels: 3, Height: 1, Width: 1}} {
		if _, err := RGB8(bad); !errors.Is(err, ErrShape) {
			t.Errorf("%+v: error %v", bad, err)
		}
	}
}

func FuzzPNGText(f *testing.F) {
	file := picture(f)
	f.Add(file)
	f.Add(withText(f, file, "ddiff", `{"schema":1}`))
	f.Add(withText(f, withText(f, file, "other", "x"), "ddiff", "grün"))
	f.Add([]byte(metadata.PNGMagic + validChunk("IHDR", "") + validChunk("iTXt", "ddiff\x00\x00\x00\x00") + validChunk("IEND", "")))
	f.Add([]byte(metadata.PNGMagic + chunk(0xfffffff0, "IHDR", "x", 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, found, err := PNGText(data, "ddiff")
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrTruncated) {
				t.Fatalf("error without a sentinel: %v", err)
			}
			if text != "" || found {
				t.Fatalf("%q, %v beside the error %v", text, found, err)
			}
			return
		}
		// What can be read can be written, and read again.
		again, err := SetPNGText(data, "ddiff", text+"!")
		if err != nil {
			t.Fatal(err)
		}
		if got, found, err := PNGText(again, "ddiff"); got != text+"!" || !found || err != nil {
			t.Fatalf("%q decoded as %q, %v, %v", text+"!", got, found, err)
		}
	})
}

// TestTextIsUTF8: a text with other bytes, which JSON would replace, is refused.
func TestTextIsUTF8(t *testing.T) {
	t.Parallel()
	file, err := EncodePNG(New(1, 1, 1))
	if err == nil {
		file, err = SetPNGText(file, "ddiff", "{\"worker\":\"gpu\xff\"}")
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := PNGText(file, "ddiff"); !errors.Is(err, ErrFormat) {
		t.Errorf("%q, %v", text, err)
	}
}
