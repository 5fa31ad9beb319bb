package raster

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestFilterPaeth compares the filter with the definition of the format, for all neighbours.
func TestFilterPaeth(t *testing.T) {
	t.Parallel()
	for a := range 256 {
		for c := range 256 {
			above, row := make([]byte, 2*256), make([]byte, 2*256)
			for b := range 256 { // pixels of one byte, every second of which has the neighbours a, b and c
				above[2*b], above[2*b+1], row[2*b] = byte(c), byte(b), byte(a)
			}
			out := make([]byte, len(row)-1)
			filterPaeth(out, row, above, 1)
			for b := range 256 {
				p := a + b - c
				pa, pb, pc := max(p-a, a-p), max(p-b, b-p), max(p-c, c-p)
				want := byte(c)
				if pa <= pb && pa <= pc {
					want = byte(a)
				} else if pb <= pc {
					want = byte(b)
				}
				if got := -out[2*b]; got != want {
					t.Fatalf("prediction from %d, %d, %d is %d, want %d", a, b, c, got, want)
				}
			}
		}
	}
	if got := filterPaeth(make([]byte, 6), []byte{0, 5, 5, 5, 9, 13, 13}, make([]byte, 7), 1); got != 2 {
		t.Errorf("%d repeats in the differences 5, 0, 0, 4, 4, 0, want 2", got)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, pixel := range []int{1, 2, 3, 6} {
		for n := range 200 { // groups of bytes that are computed together, and a rest
			above, row, out := make([]byte, pixel+n), make([]byte, pixel+n), make([]byte, n)
			for i := pixel; i < len(row); i++ { // of few levels, so that differences repeat
				above[i], row[i] = byte(100*random.IntN(3)), byte(100*random.IntN(3))
			}
			repeats, want, before := filterPaeth(out, row, above, pixel), 0, byte(0)
			for i, d := range out {
				var alone [1]byte
				filterPaeth(alone[:], []byte{row[i], row[i+pixel]}, []byte{above[i], above[i+pixel]}, 1)
				if d != alone[0] {
					t.Fatalf("byte %d of %d, %d of a pixel: %d, alone %d", i, n, pixel, d, alone[0])
				}
				if d == before {
					want++
				}
				before = d
			}
			if repeats != want {
				t.Fatalf("%d bytes, %d of a pixel: %d repeats, want %d", n, pixel, repeats, want)
			}
		}
	}
}

// TestFormsDecode: the standard library decodes the samples of all forms and sizes, of noise and of flat pictures.
func TestFormsDecode(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range []pngForm{{1, 1, 1, 8}, {1, 1, 3, 16}, {7, 3, 3, 8}, {5, 1, 1, 16}, {1, 9, 3, 8}, {33, 65, 1, 8}, {130, 70, 3, 16}, {257, 255, 3, 8}} {
		for _, levels := range []int{1, 2, 256} {
			samples := make([]byte, f.width*f.height*f.channels*f.bits/8)
			for i := range samples {
				samples[i] = byte(77 + random.IntN(levels))
			}
			stride := len(samples) / f.height
			file, err := f.encode(func(y int, row []byte) { copy(row, samples[y*stride:][:stride]) })
			must(t, err)
			img, err := png.Decode(bytes.NewReader(file))
			must(t, err)
			var got []byte
			for y := range f.height {
				for x := range f.width {
					r, g, b, a := img.At(x, y).RGBA()
					for _, v := range []uint32{r, g, b}[:f.channels] {
						if got = append(got, byte(v>>8)); f.bits == 16 {
							got = append(got, byte(v))
						}
					}
					if a != 0xffff {
						t.Fatalf("%+v: a pixel is not opaque", f)
					}
				}
			}
			if !bytes.Equal(got, samples) {
				t.Errorf("%+v with %d levels: samples changed", f, levels)
			}
		}
	}
}

// TestPNGSize compares files with those of the fastest level of the standard library: photographs, in grey and as a drawing in few colours, are at most 5 %
// and 1 KiB larger.
func TestPNGSize(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../examples/images/*.png")
	if err != nil || len(files) == 0 {
		t.Fatal("no photographs", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(t, err)
		colour, err := Decode(data)
		must(t, err)
		grey, drawing := colour.Clone(), colour.Clone()
		for i, v := range grey.Plane(0) {
			grey.Plane(1)[i], grey.Plane(2)[i] = v, v
		}
		for i, v := range drawing.Pix {
			if drawing.Pix[i] = -1; v > 0 {
				drawing.Pix[i] = 1
			}
		}
		for kind, img := range map[string]*Image{"colour": colour, "grey": grey, "drawing": drawing} {
			got, err := EncodePNG(img)
			must(t, err)
			rgba := image.NewRGBA(image.Rect(0, 0, img.Width, img.Height))
			samples, err := RGB8(img)
			must(t, err)
			for i := range img.Width * img.Height {
				copy(rgba.Pix[4*i:], samples[3*i:3*i+3])
				rgba.Pix[4*i+3] = 255
			}
			again, err := EncodeOpaque(rgba)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("%s of %s: EncodeOpaque writes another file: %v", kind, name, err)
			}
			var want bytes.Buffer
			must(t, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&want, rgba))
			if len(got) > want.Len()*105/100+1024 {
				t.Errorf("%s of %s: %d bytes, the standard library has %d", kind, name, len(got), want.Len())
			}
		}
	}
}
