package raster

import (
	"encoding/binary"
	"image"
	"image/color"
	"slices"
	"testing"

	"ddiff/internal/restore/raster/metadata"
)

// withOrientation inserts an EXIF segment after the first marker of a JPEG. The tag is the second entry of the directory.
func withOrientation(jpeg []byte, order binary.AppendByteOrder, value uint16) []byte {
	tiff := []byte("MM\x00*")
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		tiff = []byte("II*\x00")
	}
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 2)
	for _, entry := range [][2]uint16{{0x0100, 9}, {0x0112, value}} {
		tiff = order.AppendUint16(tiff, entry[0])
		tiff = order.AppendUint16(tiff, 3)
		tiff = order.AppendUint32(tiff, 1)
		tiff = order.AppendUint16(tiff, entry[1])
		tiff = order.AppendUint16(tiff, 0)
	}
	tiff = order.AppendUint32(tiff, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2))
	segment = append(segment, body...)
	return slices.Concat(jpeg[:2], segment, jpeg[2:])
}

// TestOrient numbers the pixels of a 3x2 image. Each case names the displayed positions of the stored row 0 and column 0.
func TestOrient(t *testing.T) {
	t.Parallel()
	stored := []float32{
		0, 1, 2,
		3, 4, 5,
	}
	tests := []struct {
		name        string
		orientation int
		width       int
		want        []float32
	}{
		{"row 0 top, column 0 left", 1, 3, []float32{0, 1, 2, 3, 4, 5}},
		{"row 0 top, column 0 right", 2, 3, []float32{2, 1, 0, 5, 4, 3}},
		{"row 0 bottom, column 0 right", 3, 3, []float32{5, 4, 3, 2, 1, 0}},
		{"row 0 bottom, column 0 left", 4, 3, []float32{3, 4, 5, 0, 1, 2}},
		{"row 0 left, column 0 top", 5, 2, []float32{0, 3, 1, 4, 2, 5}},
		{"row 0 right, column 0 top", 6, 2, []float32{3, 0, 4, 1, 5, 2}},
		{"row 0 right, column 0 bottom", 7, 2, []float32{5, 2, 4, 1, 3, 0}},
		{"row 0 left, column 0 bottom", 8, 2, []float32{2, 5, 1, 4, 0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			img := New(2, 2, 3)
			copy(img.Plane(0), stored)
			for i, v := range stored {
				img.Plane(1)[i] = v + 10
			}
			got := Orient(img, tt.orientation)
			if err := got.Validate(); err != nil || got.Width != tt.width {
				t.Fatalf("%dx%d, %v; want width %d", got.Width, got.Height, err, tt.width)
			}
			for i, want := range tt.want {
				if got.Plane(0)[i] != want || got.Plane(1)[i] != want+10 {
					t.Fatalf("got %v, want %v", got.Pix, tt.want)
				}
			}
		})
	}
}

func TestDecodeOrientedJPEG(t *testing.T) {
	t.Parallel()
	// White left half, black right half, 32x16.
	plain := encodeJPEG(t, filled(image.NewGray(image.Rect(0, 0, 32, 16)), func(x, _ int) color.Color {
		return color.Gray{uint8(255 * ((31 - x) / 16))}
	}))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		data := withOrientation(plain, order, 6)
		w, h, err := Probe(data)
		if err != nil || w != 16 || h != 32 {
			t.Fatalf("Probe = %d, %d, %v", w, h, err)
		}
		img, err := Decode(data)
		must(t, err)
		if img.Width != 16 || img.Height != 32 {
			t.Fatalf("%dx%d pixels, want 16x32", img.Width, img.Height)
		}
		if top, bottom := img.Pix[5*16+8], img.Pix[27*16+8]; !(top >= 0.9) || !(bottom <= -0.9) {
			t.Errorf("%v: top %v and bottom %v, want white and black", order, top, bottom)
		}
	}
}

func TestExifOrientationMalformed(t *testing.T) {
	t.Parallel()
	plain := encodeJPEG(t, image.NewGray(image.Rect(0, 0, 8, 8)))
	good := withOrientation(plain, binary.LittleEndian, 5)
	if got := metadata.Orientation(good); got != 5 {
		t.Fatalf("orientation %d, want 5", got)
	}
	for name, data := range map[string][]byte{
		"no segment":   plain,
		"value 0":      withOrientation(plain, binary.BigEndian, 0),
		"value 9":      withOrientation(plain, binary.BigEndian, 9),
		"far offset":   slices.Replace(slices.Clone(good), 16, 20, 0xff, 0xff, 0xff, 0xff),
		"many entries": slices.Replace(slices.Clone(good), 34, 36, 0x13, 0x01),
		"wrong order":  slices.Replace(slices.Clone(good), 12, 14, 'X', 'X'),
	} {
		if got := metadata.Orientation(data); got != upright {
			t.Errorf("%s: orientation %d, want upright", name, got)
		}
	}
	for n := 2; n < len(good); n++ {
		if got := metadata.Orientation(good[:n]); got != upright && got != 5 {
			t.Fatalf("first %d bytes: orientation %d", n, got)
		}
	}
}
