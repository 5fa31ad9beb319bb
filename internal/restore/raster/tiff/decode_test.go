package tiff_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/restore/raster/tiff"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// want is the picture of the files in testdata, in levels of 255: red rises to the right, green downwards, blue along the diagonal.
func want(x, y int) [3]float64 {
	return [3]float64{float64(12 * x), float64(20 * y), float64(7 * (x + y))}
}

// TestDecode reads files by libtiff in all forms, and compares their pixels with the picture from which they were made.
func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tolerance := range map[string]float64{
		"lzw": 0, "packbits": 0, "deflate": 0, "zstd": 0, "lzw_predictor": 0, "bigtiff": 0, "planar": 0, "tiled": 0, "cmyk": 0,
		"big_endian16": 0.01, "double": 0.01, "half": 0.1, "int32": 0.01, "jpeg": 6, "cmyk_jpeg": 14,
	} {
		img, err := tiff.Decode(bytes.NewReader(read(t, name+".tif")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cfg, err := tiff.DecodeConfig(bytes.NewReader(read(t, name+".tif")))
		if err != nil || cfg.Width != 20 || cfg.Height != 12 || img.Bounds() != image.Rect(0, 0, 20, 12) {
			t.Fatalf("%s: %v, header %d×%d, %v", name, img.Bounds(), cfg.Width, cfg.Height, err)
		}
		worst := 0.0
		for y := range 12 {
			for x := range 20 {
				r, g, b, _ := img.At(x, y).RGBA()
				for i, v := range []uint32{r, g, b} {
					worst = max(worst, math.Abs(float64(v)/257-want(x, y)[i]))
				}
			}
		}
		if worst > tolerance {
			t.Errorf("%s: a sample is %.3f levels from the picture, want at most %g", name, worst, tolerance)
		}
	}
}

// TestDecodeOther reads grey, floating-point and transparent pixels, and what golang.org/x/image/tiff reads.
func TestDecodeOther(t *testing.T) {
	t.Parallel()
	decode := func(name string) image.Image {
		t.Helper()
		img, err := tiff.Decode(bytes.NewReader(read(t, name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return img
	}
	grey, ok := decode("grey16.tif").(*image.Gray16)
	if !ok || grey.Gray16At(7, 5) != (color.Gray16{Y: 7*3000 + 5*100}) {
		t.Errorf("grey of 16 bits: %T", grey)
	}
	for _, name := range []string{"float.tif", "float_predictor.tif"} {
		f, ok := decode(name).(*tiff.Float)
		if !ok || len(f.Planes) != 1 || f.Bits != 32 {
			t.Fatalf("%s: %T", name, f)
		}
		for i, v := range f.Planes[0] {
			if want := float32(float64(i%20)/20 + float64(i/20)/100); v != want {
				t.Fatalf("%s: sample %d is %v, want %v", name, i, v, want)
			}
		}
	}
	clear, ok := decode("alpha.tif").(*image.NRGBA)
	if !ok || clear.NRGBAAt(3, 2) != (color.NRGBA{36, 40, 35, 39}) {
		t.Errorf("alpha: %T, %v", clear, clear.NRGBAAt(3, 2))
	}
	if b := decode("palette.tif").Bounds(); b.Dx() != 20 || b.Dy() != 12 {
		t.Errorf("palette: %v", b)
	}
}

// TestRefused: each form that is not read has a reason; a file that ends early is no damaged one.
func TestRefused(t *testing.T) {
	t.Parallel()
	set := func(name string, tag uint16, v uint32) []byte {
		data := read(t, name)
		tiff.SetNumber(data, 0, tag, v)
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		text string
	}{
		"compression": {set("lzw.tif", 259, 34925), "the compression 34925; save it with LZW"},
		"lab":         {set("lzw.tif", 262, 8), "the colour space 8"},
		"signs":       {set("float.tif", 339, 2), "signs"},
		"samples":     {set("lzw.tif", 277, 9), "9 samples"},
		"predictor":   {set("lzw_predictor.tif", 317, 3), "the predictor 3"},
		"ycbcr":       {set("lzw.tif", 262, 6), "YCbCr without JPEG"},
		"strips":      {set("lzw.tif", 278, 1), "1 of 12 strips"},
		"text":        {[]byte("II*\x00 text"), "ends before its directory"},
		"fax":         {read(t, "fax.tif"), "compression of fax"},
		"empty":       {nil, "ends in its header"},
		"far":         {[]byte("II*\x00\xff\xff\xff\xff"), "ends before its directory"},
	} {
		_, err := tiff.Decode(bytes.NewReader(c.data))
		if !errors.Is(err, tiff.ErrFormat) || !bytes.Contains([]byte(err.Error()), []byte(c.text)) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
	whole := read(t, "deflate.tif")
	for n := range whole {
		if _, err := tiff.Decode(bytes.NewReader(whole[:n])); err == nil && n < len(whole)-64 {
			t.Fatalf("the first %d of %d bytes are a picture", n, len(whole))
		}
	}
	if _, err := tiff.Decode(bytes.NewReader(set("packbits.tif", 257, 4000))); err == nil {
		t.Error("a file with fewer pixels than its header states was read")
	}
}

// TestEncode reads back what Encode wrote, with golang.org/x/image and with this package.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, p := range []tiff.Samples{
		{Width: 5, Height: 3, Channels: 1, Bits: 8}, {Width: 5, Height: 3, Channels: 3, Bits: 8}, {Width: 5, Height: 3, Channels: 4, Alpha: true, Bits: 8},
		{Width: 5, Height: 3, Channels: 3, Bits: 16}, {Width: 5, Height: 3, Channels: 2, Alpha: true, Bits: 16}, {Width: 700, Height: 300, Channels: 3, Bits: 8},
	} {
		p.Data = make([]byte, p.Width*p.Height*p.Channels*p.Bits/8)
		for i := range p.Data {
			p.Data[i] = byte(i * 37)
		}
		tree := &tiff.Tree{Entries: []tiff.Entry{tiff.Bytes(271, tiff.TypeASCII, []byte("maker\x00"))}}
		file, err := tiff.Encode(p, tree)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tiff.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Width * p.Height {
			at, size := i*p.Channels, p.Bits/8
			first := uint32(p.Data[at*size])
			if p.Bits == 16 {
				first |= uint32(p.Data[at*size+1]) << 8
			} else {
				first *= 257
			}
			got := color.NRGBA64Model.Convert(img.At(i%p.Width, i/p.Width)).(color.NRGBA64)
			if !p.Alpha && uint32(got.R) != first {
				t.Fatalf("%+v: pixel %d is %v, want %d", p.Channels, i, got, first)
			}
		}
		if d, err := tiff.First(file); err != nil || string(d.Find(271).Data) != "maker\x00" {
			t.Errorf("the tag of the maker: %v", err)
		}
	}
	if _, err := tiff.Encode(tiff.Samples{Width: 2, Height: 2, Channels: 3, Bits: 8, Data: make([]byte, 11)}, nil); err == nil {
		t.Error("11 bytes for 12 samples")
	}
}

// FuzzDecode: no file makes the decoder panic, and none above its own header's size is read.
func FuzzDecode(f *testing.F) {
	names, err := filepath.Glob("testdata/*.tif")
	if err != nil || len(names) < 15 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		f.Add(read(f, filepath.Base(name)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := tiff.DecodeConfig(bytes.NewReader(data))
		if err != nil || cfg.Width > 1<<16/max(1, cfg.Height) {
			return
		}
		img, err := tiff.Decode(bytes.NewReader(data))
		if err == nil && (img.Bounds().Dx() != cfg.Width || img.Bounds().Dy() != cfg.Height) {
			t.Fatalf("%v, the header states %d×%d", img.Bounds(), cfg.Width, cfg.Height)
		}
		if tree, err := tiff.ReadTree(data); err == nil {
			if _, err := tiff.ReadTree(tree.Encode()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
