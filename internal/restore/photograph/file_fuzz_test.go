package photograph_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
)

// exifOf returns a TIFF structure of n entries with a tag, of which all have the same bytes or point to the directory itself.
func exifOf(n int, tag uint16) []byte {
	out := []byte("II*\x00\x08\x00\x00\x00")
	out = binary.LittleEndian.AppendUint16(out, uint16(n))
	for i := range n {
		switch tag {
		case 34665: // EXIF
			out = binary.LittleEndian.AppendUint16(out, tag)
			out = append(out, 4, 0, 1, 0, 0, 0, 8, 0, 0, 0)
		default:
			out = binary.LittleEndian.AppendUint16(out, tag+uint16(i))
			out = append(out, 7, 0)
			out = binary.LittleEndian.AppendUint32(out, uint32(12*n))
			out = append(out, 8, 0, 0, 0)
		}
	}
	return append(out, 0, 0, 0, 0)
}

// encodeSmall writes a small picture with the properties of a file in all formats.
func encodeSmall(t *testing.T, data []byte) {
	img := raster.New(3, 2, 2)
	for _, format := range []photograph.Format{photograph.PNG, photograph.JPEG, photograph.TIFF, photograph.WebP} {
		file, err := photograph.EncodeFile(img, &raster.Picture{Bits: 8}, data, photograph.FileOptions{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		if len(file) > 64<<10+8*len(data) {
			t.Errorf("%s: %d bytes with the properties of a file of %d bytes", format, len(file), len(data))
		}
		if _, err := raster.DecodePicture(file); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		metadata.Text(data, "ddiff")
	}
}

// FuzzMetadata: EXIF data, profiles and texts of any file are read in memory in proportion to it, and what is read can be written.
func FuzzMetadata(f *testing.F) {
	for _, name := range []string{"camera.jpg", "camera.png", "camera.webp", "camera.tif"} {
		f.Add(read(f, name))
	}
	f.Add(exifOf(40, 40000))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 16<<20+64*len(data), func() { encodeSmall(t, data) })
	})
}

// TestMetadataBombs: directories whose entries have the same bytes, or point to the directory itself, and thousands of texts.
func TestMetadataBombs(t *testing.T) {
	for name, data := range map[string][]byte{
		"same bytes":    exifOf(4000, 36000),
		"itself":        exifOf(4000, 34665),
		"JPEG":          append(append([]byte("\xff\xd8\xff\xe1\xff\xff"), append([]byte("Exif\x00\x00"), exifOf(5000, 36000)...)[:65533]...), "\xff\xda"...),
		"JPEG of texts": append([]byte("\xff\xd8"), bytes.Repeat([]byte("\xff\xfe\x00\x09ddiff\x00x"), 100_000)...),
	} {
		t.Run(name, func(t *testing.T) {
			fuzztest.Limit(t, 16<<20+64*len(data), func() { encodeSmall(t, data) })
		})
	}
}
