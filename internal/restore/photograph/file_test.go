package photograph_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bep/imagemeta"
	"golang.org/x/image/webp"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "restore", "picture", "testdata", name))
	must(t, err)
	return data
}

func decode(t testing.TB, file []byte) *raster.Picture {
	t.Helper()
	p, err := raster.DecodePicture(file)
	must(t, err)
	return p
}

var formats = map[photograph.Format]imagemeta.ImageFormat{photograph.PNG: imagemeta.PNG, photograph.JPEG: imagemeta.JPEG, photograph.TIFF: imagemeta.TIFF, photograph.WebP: imagemeta.WebP}

// tags returns what another program finds in a file, as text by name.
func tags(t testing.TB, file []byte, f photograph.Format) map[string]string {
	t.Helper()
	out := map[string]string{}
	_, err := imagemeta.Decode(imagemeta.Options{
		R: bytes.NewReader(file), ImageFormat: formats[f], Sources: imagemeta.EXIF | imagemeta.IPTC | imagemeta.XMP,
		ShouldHandleTag: func(imagemeta.TagInfo) bool { return true },
		HandleTag: func(tag imagemeta.TagInfo) error {
			out[fmt.Sprint(tag.Source, ".", tag.Tag)] = strings.Trim(fmt.Sprint(tag.Value), "\x00")
			return nil
		},
	})
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	return out
}

func key(s imagemeta.Source, name string) string { return fmt.Sprint(s, ".", name) }

// TestMetadata carries what the files of a camera say, by Pillow, into each format, and reads it with another program. Their pixels lie on the side.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"camera.jpg", "camera.png", "camera.webp", "camera.tif"} {
		source := read(t, name)
		p := decode(t, source)
		if p.Image.Width != 8 || p.Image.Height != 16 {
			t.Fatalf("%s: %d×%d", name, p.Image.Width, p.Image.Height)
		}
		larger, err := raster.Scale(p.Image, 16, 32)
		must(t, err)
		for f := range formats {
			file, err := photograph.EncodeFile(larger, p, source, photograph.FileOptions{Format: f})
			must(t, err)
			if got := raster.FormatOf(file); got != string(f) {
				t.Errorf("%s as %s: it is a %s", name, f, got)
			}
			again := decode(t, file)
			if again.Image.Width != 16 || again.Image.Height != 32 || metadata.Orientation(file) != 1 {
				t.Errorf("%s as %s: %d×%d, orientation %d", name, f, again.Image.Width, again.Image.Height, metadata.Orientation(file))
			}
			found := tags(t, file, f)
			want := map[string]string{
				key(imagemeta.EXIF, "Make"): "Testmaker", key(imagemeta.EXIF, "Model"): "Model 1", key(imagemeta.EXIF, "Copyright"): "(c) Somebody",
			}
			if f != photograph.PNG { // whose XMP data imagemeta does not read
				want[key(imagemeta.XMP, "Rating")], want[key(imagemeta.XMP, "Orientation")] = "4", "1"
			}
			if name != "camera.tif" { // which has no such directories
				want[key(imagemeta.EXIF, "DateTimeOriginal")], want[key(imagemeta.EXIF, "GPSLatitudeRef")] = "2020:01:02 03:04:05", "N"
				want[key(imagemeta.EXIF, "Orientation")] = "1"
				want[key(imagemeta.EXIF, "ExposureTime")], want[key(imagemeta.EXIF, "ExifImageWidth")] = "1/100", "16"
			}
			if (name == "camera.jpg" || name == "camera.tif") && (f == photograph.JPEG || f == photograph.TIFF) {
				want[key(imagemeta.IPTC, "Caption-Abstract")] = "A caption"
			}
			for tag, v := range want {
				if found[tag] != v {
					t.Errorf("%s as %s: %s is %q, want %q", name, f, tag, found[tag], v)
				}
			}
			m, of := metadata.Read(file), metadata.Read(source)
			if !bytes.Equal(m.Profile, of.Profile) || m.Profile == nil {
				t.Errorf("%s as %s: a profile of %d bytes", name, f, len(m.Profile))
			}
			if !bytes.Contains(m.XMP, []byte(`xmp:Rating="4"`)) || !bytes.Contains(m.XMP, []byte(`tiff:Orientation="1"`)) {
				t.Errorf("%s as %s: XMP %q", name, f, m.XMP)
			}
			if math.Abs(m.DPI[0]-300) > 0.5 || math.Abs(m.DPI[1]-300) > 0.5 {
				t.Errorf("%s as %s: %v pixels per inch", name, f, m.DPI)
			}
			if f == photograph.TIFF && of.IPTC != nil && !bytes.Equal(m.IPTC, of.IPTC) {
				t.Errorf("%s as %s: IPTC %q", name, f, m.IPTC)
			}
			bare, err := photograph.EncodeFile(larger, p, source, photograph.FileOptions{Format: f, Strip: true})
			must(t, err)
			for _, text := range []string{"Testmaker", "Somebody", "Rating", "caption"} {
				if bytes.Contains(bare, []byte(text)) {
					t.Errorf("%s as %s: %q in spite of Strip", name, f, text)
				}
			}
			for strip, file := range map[bool][]byte{false: file, true: bare} {
				for _, asked := range []photograph.FileOptions{{Format: f}, {Format: f, Strip: true}, {Format: f, Strip: strip, Quality: 80}} {
					ok, err := photograph.HasForm(file, source, asked)
					must(t, err)
					if want := asked.Strip == strip && (f != photograph.JPEG || asked.Quality == 0); ok != want {
						t.Errorf("%s as %s, strip=%v, has the form %+v: %v, want %v", name, f, strip, asked, ok, want)
					}
				}
			}
		}
	}
}

// TestText: the text of a program is found in each format, and the pixels stay.
func TestText(t *testing.T) {
	t.Parallel()
	source := read(t, "camera.jpg")
	p := decode(t, source)
	long := strings.Repeat("a passport of more than a segment. ", 4000)
	for f := range formats {
		if f == photograph.PNG {
			continue
		}
		file, err := photograph.EncodeFile(p.Image, p, source, photograph.FileOptions{Format: f})
		must(t, err)
		marked, err := metadata.SetText(file, "ddiff", long)
		must(t, err)
		text, found := metadata.Text(marked, "ddiff")
		if !found || text != long {
			t.Errorf("%s: a text of %d bytes, want %d", f, len(text), len(long))
		}
		if a, b := decode(t, file), decode(t, marked); !equal(a.Image.Pix, b.Image.Pix) {
			t.Errorf("%s: other pixels", f)
		}
		if got := tags(t, marked, f)[key(imagemeta.EXIF, "Make")]; got != "Testmaker" {
			t.Errorf("%s: the maker is %q beside a text", f, got)
		}
		if _, found := metadata.Text(file, "ddiff"); found {
			t.Errorf("%s: a text that nobody wrote", f)
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestSamples: 8 and 16 bits, floating-point samples beyond white, and grey pass as they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	img := raster.New(3, 5, 7)
	for i := range img.Pix {
		img.Pix[i] = float32(i)/52 - 1.01
	}
	grey := raster.New(3, 5, 7)
	for c := range 3 {
		copy(grey.Plane(c), img.Plane(0))
	}
	for _, c := range []struct {
		img       *raster.Image
		of        raster.Picture
		format    photograph.Format
		tolerance float64
		bits      int
	}{
		{img, raster.Picture{Bits: 8}, photograph.PNG, 1. / 255, 8},
		{img, raster.Picture{Bits: 8}, photograph.WebP, 1. / 255, 8},
		{img, raster.Picture{Bits: 8}, photograph.TIFF, 1. / 255, 8},
		{img, raster.Picture{Bits: 16}, photograph.PNG, 1. / 65535, 16},
		{img, raster.Picture{Bits: 16}, photograph.TIFF, 1. / 65535, 16},
		{img, raster.Picture{Bits: 32}, photograph.PNG, 1. / 65535, 16},
		{img, raster.Picture{Bits: 32}, photograph.TIFF, 1e-7, 32},
		{grey, raster.Picture{Bits: 8, Grey: true}, photograph.TIFF, 1. / 255, 8},
		{grey, raster.Picture{Bits: 8, Grey: true}, photograph.JPEG, 8. / 255, 8},
		{grey, raster.Picture{Bits: 32, Grey: true}, photograph.TIFF, 1e-7, 32},
	} {
		file, err := photograph.EncodeFile(c.img, &c.of, nil, photograph.FileOptions{Format: c.format})
		must(t, err)
		again := decode(t, file)
		if again.Bits != c.bits || again.Grey != c.of.Grey {
			t.Errorf("%s of %d bits: %d bits, grey %v", c.format, c.of.Bits, again.Bits, again.Grey)
		}
		for i, v := range again.Image.Pix {
			want := float64(c.img.Pix[i])
			if c.bits < 32 {
				want = min(1, max(-1, want))
			}
			if math.Abs(float64(v)-want) > 1.01*c.tolerance {
				t.Fatalf("%s of %d bits: value %d is %v, want %v", c.format, c.of.Bits, i, v, want)
			}
		}
	}
}

// TestAlpha: transparent pixels stay, also in another size, and the picture looks the same over white.
func TestAlpha(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		m.SetNRGBA(i%8, i/8, color.NRGBA{uint8(3 * i), uint8(255 - 2*i), 90, uint8(255 * (i % 8) / 7)})
	}
	var file bytes.Buffer
	must(t, png.Encode(&file, m))
	p := decode(t, file.Bytes())
	for _, f := range []photograph.Format{photograph.PNG, photograph.TIFF, photograph.WebP} {
		out, err := photograph.EncodeFile(p.Image, p, file.Bytes(), photograph.FileOptions{Format: f})
		must(t, err)
		again := decode(t, out)
		if again.Alpha == nil {
			t.Fatalf("%s: opaque", f)
		}
		for i := range again.Alpha.Pix {
			if math.Abs(float64(again.Alpha.Pix[i]-p.Alpha.Pix[i])) > 1e-3 {
				t.Fatalf("%s: opacity %d is %v, want %v", f, i, again.Alpha.Pix[i], p.Alpha.Pix[i])
			}
		}
		for i, v := range again.Image.Pix {
			if math.Abs(float64(v-p.Image.Pix[i])) > 1./255 {
				t.Fatalf("%s: over white value %d is %v, want %v", f, i, v, p.Image.Pix[i])
			}
		}
	}
	larger, err := raster.Scale(p.Image, 16, 16)
	must(t, err)
	out, err := photograph.EncodeFile(larger, p, file.Bytes(), photograph.FileOptions{Format: photograph.PNG})
	must(t, err)
	if again := decode(t, out); again.Alpha == nil || again.Alpha.Width != 16 || again.Alpha.Pix[0] > 0.01 || again.Alpha.Pix[15] < 0.99 {
		t.Errorf("twice as large: %+v", again.Alpha)
	}
	out, err = photograph.EncodeFile(p.Image, p, file.Bytes(), photograph.FileOptions{Format: photograph.JPEG})
	must(t, err)
	if again := decode(t, out); again.Alpha != nil {
		t.Error("a transparent JPEG")
	}
	p.Alpha.Pix[5] = 1.2 // as of a TIFF of floating-point samples
	if _, err = photograph.EncodeFile(p.Image, p, nil, photograph.FileOptions{Format: photograph.PNG}); err != nil || p.Alpha.Pix[5] != 1.2 {
		t.Errorf("the encoder changes the source: opacity %v, %v", p.Alpha.Pix[5], err)
	}
}

// TestRange: numbers of 12 bits in a file of 16 bits come back as such.
func TestRange(t *testing.T) {
	t.Parallel()
	m := image.NewGray16(image.Rect(0, 0, 64, 64))
	for i := range 4096 {
		m.SetGray16(i%64, i/64, color.Gray16{Y: uint16(i)})
	}
	var file bytes.Buffer
	must(t, png.Encode(&file, m))
	p := decode(t, file.Bytes())
	p.Rescale(0, 4095)
	if first, last := p.Image.Pix[0], p.Image.Pix[4095]; math.Abs(float64(first)+1) > 1e-6 || math.Abs(float64(last)-1) > 1e-6 {
		t.Errorf("from %v to %v, want −1 to 1", first, last)
	}
	for _, f := range []photograph.Format{photograph.PNG, photograph.TIFF} {
		out, err := photograph.EncodeFile(p.Image, p, file.Bytes(), photograph.FileOptions{Format: f, Range: &[2]float64{0, 4095}})
		must(t, err)
		var img image.Image
		if f == photograph.PNG {
			img, err = png.Decode(bytes.NewReader(out))
		} else {
			img, err = tiff.Decode(bytes.NewReader(out))
		}
		must(t, err)
		for i := range 4096 {
			if got := img.(*image.Gray16).Gray16At(i%64, i/64).Y; int(got) != i {
				t.Fatalf("%s: %d came back as %d", f, i, got)
			}
		}
	}
}

// TestWebP: golang.org/x/image reads the files.
func TestWebP(t *testing.T) {
	t.Parallel()
	source := read(t, "camera.webp")
	p := decode(t, source)
	file, err := photograph.EncodeFile(p.Image, p, source, photograph.FileOptions{Format: photograph.WebP})
	must(t, err)
	img, err := webp.Decode(bytes.NewReader(file))
	must(t, err)
	if r, _, _, _ := img.At(0, 3).RGBA(); r>>8 != uint32(raster.To8(p.Image.Pix[3*8])) {
		t.Errorf("red is %d", r>>8)
	}
}

// TestFormats: names, extensions, and the format of each source.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]photograph.Format{"a.JPG": photograph.JPEG, "a.jfif": photograph.JPEG, "a.tiff": photograph.TIFF, "a.webp": photograph.WebP, "a.png": photograph.PNG, "a": "", "a.bmp": ""} {
		if f, ok := photograph.FormatOf(name); f != want || ok != (want != "") {
			t.Errorf("%s: %q", name, f)
		}
	}
	if f, err := photograph.ParseFormat("jpg"); f != photograph.JPEG || err != nil {
		t.Error(f, err)
	}
	if _, err := photograph.ParseFormat("gif"); err == nil || !strings.Contains(err.Error(), "png, jpeg, tiff and webp") {
		t.Error(err)
	}
	for name, want := range map[string]photograph.Format{"camera.jpg": photograph.JPEG, "camera.webp": photograph.WebP, "camera.png": photograph.PNG, "camera.tif": photograph.TIFF} {
		if f := photograph.NaturalFormat(read(t, name), 8); f != want {
			t.Errorf("%s: %s", name, f)
		}
	}
	for bits, want := range map[int]photograph.Format{1: photograph.PNG, 16: photograph.TIFF, 32: photograph.TIFF} {
		if f := photograph.NaturalFormat(read(t, "camera.tif"), bits); f != want {
			t.Errorf("TIFF of %d bits: %s", bits, f)
		}
	}
}

// TestQuality: a higher quality is closer to the picture and larger.
func TestQuality(t *testing.T) {
	t.Parallel()
	source := read(t, "camera.jpg")
	p := decode(t, source)
	low, err := photograph.EncodeFile(p.Image, p, nil, photograph.FileOptions{Format: photograph.JPEG, Quality: 20})
	must(t, err)
	high, err := photograph.EncodeFile(p.Image, p, nil, photograph.FileOptions{Format: photograph.JPEG})
	must(t, err)
	if len(low) >= len(high) {
		t.Errorf("%d bytes at quality 20, %d at %d", len(low), len(high), photograph.DefaultQuality)
	}
}
