package raster

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// profileOf is an ICC profile of a colour space with nothing in it.
func profileOf(space string) []byte {
	p := make([]byte, 200)
	binary.BigEndian.PutUint32(p, uint32(len(p)))
	copy(p[16:], space)
	copy(p[36:], "acsp")
	for i := 128; i < len(p); i++ {
		p[i] = byte(i * 7)
	}
	return p
}

// withChunk inserts a chunk behind the header of a PNG.
func withChunk(file []byte, c string) []byte { return slices.Concat(file[:33], []byte(c), file[33:]) }

func iccChunk(t *testing.T, profile []byte) string {
	t.Helper()
	var body bytes.Buffer
	body.WriteString("any\x00\x00")
	w := zlib.NewWriter(&body)
	_, err := w.Write(profile)
	must(t, err)
	must(t, w.Close())
	return validChunk("iCCP", body.String())
}

// exif is a TIFF structure with an orientation.
func exif(orientation byte) []byte {
	return []byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0}
}

// colours is a picture of 6×4 different opaque colours.
func colours() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 6, 4))
	for i := range 24 {
		m.Set(i%6, i/6, color.NRGBA{uint8(10 * i), uint8(255 - 9*i), uint8(i), 255})
	}
	return m
}

// TestDecodePicture reads pictures of all kinds, and writes images of their form.
func TestDecodePicture(t *testing.T) {
	t.Parallel()
	grey8, grey16, deep, clear := image.NewGray(image.Rect(0, 0, 6, 4)), image.NewGray16(image.Rect(0, 0, 6, 4)), image.NewNRGBA64(image.Rect(0, 0, 6, 4)), colours()
	for i := range 24 {
		grey8.Pix[i] = uint8(i * 10)
		grey16.SetGray16(i%6, i/6, color.Gray16{uint16(i * 2571)})
		deep.SetNRGBA64(i%6, i/6, color.NRGBA64{uint16(i * 2000), uint16(i * 111), 65535, 65535})
	}
	clear.Pix[3] = 100
	var asJPEG, asTIFF bytes.Buffer
	must(t, errors.Join(jpeg.Encode(&asJPEG, colours(), nil), tiff.Encode(&asTIFF, deep, nil)))
	rgb, grey := profileOf("RGB "), profileOf("GRAY")
	segment := append([]byte("ICC_PROFILE\x00\x01\x01"), rgb...)
	withProfile := slices.Concat(asJPEG.Bytes()[:2], []byte{0xff, 0xe2, 0, byte(2 + len(segment))}, segment, asJPEG.Bytes()[2:])
	for name, c := range map[string]struct {
		data  []byte
		want  Picture // without the image and alpha
		fits  bool
		model color.Model // of the written file
	}{
		"colour":             {encodePNG(t, colours()), Picture{Bits: 8}, false, color.RGBAModel},
		"grey":               {encodePNG(t, grey8), Picture{Grey: true, Bits: 8}, false, color.GrayModel},
		"16 bits of grey":    {encodePNG(t, grey16), Picture{Grey: true, Bits: 16}, false, color.Gray16Model},
		"16 bits":            {encodePNG(t, deep), Picture{Bits: 16}, false, color.RGBA64Model},
		"TIFF of 16 bits":    {asTIFF.Bytes(), Picture{Bits: 16}, false, color.RGBA64Model},
		"alpha":              {encodePNG(t, clear), Picture{Bits: 8}, false, color.RGBAModel},
		"profile":            {withChunk(encodePNG(t, colours()), iccChunk(t, rgb)), Picture{Bits: 8, Profile: rgb}, true, color.RGBAModel},
		"profile of a JPEG":  {withProfile, Picture{Bits: 8, Profile: rgb}, true, color.RGBAModel},
		"grey profile":       {withChunk(encodePNG(t, grey8), iccChunk(t, grey)), Picture{Grey: true, Bits: 8, Profile: grey}, true, color.GrayModel},
		"RGB profile, grey":  {withChunk(encodePNG(t, grey8), iccChunk(t, rgb)), Picture{Grey: true, Bits: 8, Profile: rgb}, true, color.RGBAModel},
		"grey profile, RGB":  {withChunk(encodePNG(t, colours()), iccChunk(t, grey)), Picture{Bits: 8, Profile: grey}, false, color.RGBAModel},
		"damaged profile":    {withChunk(encodePNG(t, colours()), iccChunk(t, rgb[:150])), Picture{Bits: 8}, false, color.RGBAModel},
		"profile of nothing": {withChunk(encodePNG(t, colours()), validChunk("iCCP", "x")), Picture{Bits: 8}, false, color.RGBAModel},
	} {
		p, err := DecodePicture(c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Grey != c.want.Grey || p.Bits != c.want.Bits || (p.Alpha != nil) != (name == "alpha") || !bytes.Equal(p.Profile, c.want.Profile) || p.ProfileFits() != c.fits {
			t.Errorf("%s: grey %v, %d bits, alpha %v, profile of %d bytes, fits %v", name, p.Grey, p.Bits, p.Alpha != nil, len(p.Profile), p.ProfileFits())
		}
		file, err := EncodePicture(p.Image, *p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if config, err := png.DecodeConfig(bytes.NewReader(file)); err != nil || config.ColorModel != c.model {
			t.Errorf("%s: the written file has the model %v, %v", name, config.ColorModel, err)
		}
		again, err := DecodePicture(file)
		if err != nil || c.fits != (len(again.Profile) > 0) || c.fits && !bytes.Equal(again.Profile, p.Profile) {
			t.Errorf("%s: the written file: %v", name, err)
		}
		if name != "profile of a JPEG" && !slices.Equal(again.Image.Pix, p.Image.Pix) && p.Alpha == nil {
			t.Errorf("%s: the written file has other pixels", name)
		}
	}
}

// TestOrientationOfPictures applies the orientation of formats that Decode leaves as they are.
func TestOrientationOfPictures(t *testing.T) {
	t.Parallel()
	file := withChunk(encodePNG(t, colours()), validChunk("eXIf", string(exif(6))))
	p, err := DecodePicture(file)
	must(t, err)
	plain, err := Decode(file)
	must(t, err)
	w, h, err := ProbePicture(file)
	if w != 4 || h != 6 || err != nil || p.Image.Width != 4 || p.Image.Height != 6 || plain.Width != 6 {
		t.Errorf("%d×%d, %v: decoded %d×%d, plain %d×%d", w, h, err, p.Image.Width, p.Image.Height, plain.Width, plain.Height)
	}
	// A quarter turn clockwise: the lower left pixel comes first.
	if got, want := p.Image.Pix[0], plain.Pix[3*6]; got != want {
		t.Errorf("the first pixel is %v, want %v", got, want)
	}
}

// TestRefusedPictures: animations and too many pixels, by the header.
func TestRefusedPictures(t *testing.T) {
	t.Parallel()
	animation := []byte("RIFF\x12\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x0f\x00\x00\x0f\x00\x00")
	huge := encodePNG(t, colours())
	binary.BigEndian.PutUint32(huge[16:], 40_000)
	binary.BigEndian.PutUint32(huge[20:], 40_000)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	// Three black columns and five white ones, by Pillow with the compression group4.
	fax, err := hex.DecodeString("49492a001000000026b7ffffe002002009000001030001000000080000000101030001000000080000000201030001000000" +
		"0100000003010300010000000400000006010300010000000100000011010400010000000800000016010300010000000800" +
		"00001701040001000000080000001c010300010000000100000000000000")
	must(t, err)
	for name, c := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"fax":       {fax, ErrFormat, "compression of fax; save it with another one"},
		"AVIF":      {[]byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00"), ErrFormat, "AVIF picture; convert it first, as with: avifdec"},
		"HEIC":      {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00"), ErrFormat, "HEIC picture; convert it first, as with: heif-convert"},
		"raw":       {[]byte("II*\x00\x10\x00\x00\x00CR\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrFormat, "raw file of a camera; develop it first"},
		"animation": {animation, ErrFormat, "animation"},
		"huge":      {huge, ErrTooLarge, "40000x40000"},
		"text":      {[]byte("text"), ErrFormat, "not a PNG"},
		"empty":     {nil, ErrTruncated, "empty"},
	} {
		_, err := DecodePicture(c.data)
		_, _, probed := ProbePicture(c.data)
		for _, err := range []error{err, probed} {
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestDeepSamples: To8 of a decoded 16-bit sample is To8 of the value, so that digests of 8-bit samples hold for both files.
func TestDeepSamples(t *testing.T) {
	t.Parallel()
	const n = 4096
	img := New(3, 1, n)
	for i := range img.Pix {
		img.Pix[i] = -1 + 2*float32(i)/float32(len(img.Pix)-1)
	}
	file, err := EncodePicture(img, Picture{Bits: 16})
	must(t, err)
	deep, err := Decode(file)
	must(t, err)
	for i, v := range deep.Pix {
		if To8(v) != To8(img.Pix[i]) {
			t.Fatalf("value %v is %d, from 16 bits %d", img.Pix[i], To8(img.Pix[i]), To8(v))
		}
	}
}

// TestExtendAndCrop: a cropped extension is the image.
func TestExtendAndCrop(t *testing.T) {
	t.Parallel()
	p, err := DecodePicture(encodePNG(t, colours()))
	must(t, err)
	wide := Extend(p.Image, 8, 6)
	if wide.Width != 8 || wide.Height != 6 || wide.Pix[6] != p.Image.Pix[4] || wide.Pix[4*8] != p.Image.Pix[2*6] {
		t.Errorf("extended to %d×%d: %v", wide.Width, wide.Height, wide.Pix[:8])
	}
	if back := Crop(wide, 6, 4); !slices.Equal(back.Pix, p.Image.Pix) {
		t.Error("the cropped extension differs")
	}
	if Crop(p.Image, 9, 9) != p.Image {
		t.Error("cropped beyond its size")
	}
}

// TestForms reads BMP, the first frame of GIF, CMYK, and TIFF of floating-point samples, by their content.
func TestForms(t *testing.T) {
	t.Parallel()
	var asBMP, asGIF bytes.Buffer
	pixel := float32(level8(colours().NRGBAAt(1, 0).R))
	must(t, bmp.Encode(&asBMP, colours()))
	first, second := image.NewPaletted(image.Rect(0, 0, 6, 4), color.Palette{color.Black, color.White}), image.NewPaletted(image.Rect(0, 0, 6, 4), color.Palette{color.White})
	first.Pix[7] = 1
	part := image.NewPaletted(image.Rect(2, 1, 4, 3), color.Palette{color.Black})
	var partial bytes.Buffer
	must(t, gif.EncodeAll(&partial, &gif.GIF{Image: []*image.Paletted{part}, Delay: []int{0}, Config: image.Config{Width: 6, Height: 4}}))
	must(t, gif.EncodeAll(&asGIF, &gif.GIF{Image: []*image.Paletted{first, second}, Delay: []int{0, 0}}))
	for name, c := range map[string]struct {
		data          []byte
		width, height int
		bits          int
		grey, cmyk    bool
		at            int
		want          float32
		near          float32
	}{
		"bmp":         {asBMP.Bytes(), 6, 4, 8, false, false, 1, pixel, 1e-6},
		"gif":         {asGIF.Bytes(), 6, 4, 8, true, false, 7, 1, 0},
		"part.gif":    {partial.Bytes(), 6, 4, 8, true, false, 8, -1, 0},
		"float.tif":   {readFile(t, "../tiff/testdata/float.tif"), 20, 12, 32, true, false, 3*20 + 19, 2*(19./20+0.03) - 1, 1e-6},
		"cmyk.tif":    {readFile(t, "../tiff/testdata/cmyk.tif"), 20, 12, 8, false, true, 5*20 + 7, 84./127.5 - 1, 1e-6},
		"alpha.tif":   {readFile(t, "../tiff/testdata/alpha.tif"), 20, 12, 8, false, false, 0, 1, 0},
		"grey16.tif":  {readFile(t, "../tiff/testdata/grey16.tif"), 20, 12, 16, true, false, 5*20 + 7, 21500/32767.5 - 1, 1e-6},
		"jpeg.tif":    {readFile(t, "../tiff/testdata/jpeg.tif"), 20, 12, 8, false, false, 5*20 + 7, 84./127.5 - 1, 0.05},
		"bigtiff.tif": {readFile(t, "../tiff/testdata/bigtiff.tif"), 20, 12, 8, false, false, 5*20 + 7, 84./127.5 - 1, 1e-6},
	} {
		p, err := DecodePicture(c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, h, err := ProbePicture(c.data)
		if w != c.width || h != c.height || err != nil || p.Image.Width != w || p.Image.Height != h {
			t.Errorf("%s: %d×%d, %v, decoded %d×%d", name, w, h, err, p.Image.Width, p.Image.Height)
		}
		if p.Bits != c.bits || p.Grey != c.grey || p.CMYK != c.cmyk || (p.Alpha != nil) != (name == "alpha.tif" || name == "part.gif") {
			t.Errorf("%s: %d bits, grey %v, CMYK %v, alpha %v", name, p.Bits, p.Grey, p.CMYK, p.Alpha != nil)
		}
		if got := p.Image.Pix[c.at]; max(got-c.want, c.want-got) > c.near {
			t.Errorf("%s: value %d is %v, want %v", name, c.at, got, c.want)
		}
	}
	if !IsLossy(readFile(t, "../tiff/testdata/jpeg.tif")) || IsLossy(readFile(t, "../tiff/testdata/lzw.tif")) {
		t.Error("JPEG in TIFF is lossy, LZW is not")
	}
	nan := readFile(t, "../tiff/testdata/float.tif")
	at := bytes.Index(nan, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.05))) // the second sample
	binary.LittleEndian.PutUint32(nan[at:], math.Float32bits(float32(math.NaN())))
	if _, err := DecodePicture(nan); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
}
