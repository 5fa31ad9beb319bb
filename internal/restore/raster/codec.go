package raster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"

	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// codec is one file format.
type codec struct {
	name   string
	magic  string // a '?' matches any byte
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	// toRGB converts luma and chroma, if the file stores them.
	toRGB func(y, cb, cr uint8) (r, g, b uint8)
	// content returns the largest number of bytes that the pixels take, by the first SniffBytes bytes. Nil: the header
	// does not state it.
	content func(beginning []byte) (size int64, ok bool)
}

// codecs lists the supported formats.
func codecs() []codec {
	out := []codec{
		{"png", metadata.PNGMagic, png.DecodeConfig, png.Decode, color.YCbCrToRGB, pngContent},
		{"jpeg", metadata.JPEGMagic, jpeg.DecodeConfig, jpeg.Decode, color.YCbCrToRGB, nil},
		{"webp", webpMagic, webp.DecodeConfig, webp.Decode, videoToRGB, webpContent},
		{"bmp", "BM????\x00\x00\x00\x00", bmp.DecodeConfig, bmp.Decode, color.YCbCrToRGB, nil},
		{"gif", "GIF8?a", gif.DecodeConfig, firstFrame, color.YCbCrToRGB, nil},
	}
	for _, magic := range []string{"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"} {
		out = append(out, codec{"tiff", magic, tiff.DecodeConfig, tiff.Decode, color.YCbCrToRGB, nil})
	}
	return out
}

// firstFrame decodes the first frame of a GIF file, on a transparent canvas if it is smaller.
func firstFrame(r io.Reader) (image.Image, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	cfg, err := gif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	frame, err := gif.Decode(bytes.NewReader(data))
	canvas := image.Rect(0, 0, cfg.Width, cfg.Height)
	if err != nil || frame.Bounds() == canvas {
		return frame, err
	}
	out := image.NewNRGBA(canvas)
	draw.Draw(out, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
	return out, nil
}

const webpMagic = metadata.WebPMagic

// Formats names the formats of [Decode] in messages.
const Formats = "PNG, JPEG, TIFF, WebP, BMP or GIF"

// foreign are formats that are known but not read, with the commands that convert them.
func foreign() []struct{ magic, name, remedy string } {
	return []struct{ magic, name, remedy string }{
		{"????ftypavif", "an AVIF picture", "convert it first, as with: avifdec photo.avif photo.png"},
		{"????ftypavis", "an AVIF picture", "convert it first, as with: avifdec photo.avif photo.png"},
		{"????ftypheic", "a HEIC picture", heifRemedy},
		{"????ftypheix", "a HEIC picture", heifRemedy},
		{"????ftyphev", "a HEIC picture", heifRemedy},
		{"????ftypmif1", "a HEIF picture", heifRemedy},
		{"????ftypmsf1", "a HEIF picture", heifRemedy},
		{"????ftypcrx ", "a raw file of a camera", "develop it first, as with: darktable-cli photo.cr3 photo.tif"},
		{"????ftyp", "a video", "save a frame as PNG, as with: ffmpeg -i video.mp4 -frames:v 1 frame.png"},
		{"\x00\x00\x00\x0cJXL ", "a JPEG XL picture", "convert it first, as with: djxl photo.jxl photo.png"},
		{"\xff\x0a", "a JPEG XL picture", "convert it first, as with: djxl photo.jxl photo.png"},
		{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture", "convert it first, as with: opj_decompress -i photo.jp2 -o photo.png"},
		{"8BPS", "a Photoshop document", "save it as TIFF or PNG"},
		{"%PDF", "a PDF document", "save its picture first, as with: pdfimages -all file.pdf picture"},
		{"v/1\x01", "an OpenEXR picture", "save it as TIFF with floating-point samples, as with: oiiotool photo.exr -o photo.tif"},
		{"#?RADIANCE", "a Radiance picture", "save it as TIFF with floating-point samples, as with: oiiotool photo.hdr -o photo.tif"},
		{"SIMPLE  =", "a FITS file", "save its array as .npy"},
		{"P5", "a PGM picture", netpbmRemedy},
		{"P6", "a PPM picture", netpbmRemedy},
		{"FUJIFILMCCD-RAW", "a raw file of a camera", "develop it first, as with: darktable-cli photo.raf photo.tif"},
		{"IIU\x00", "a raw file of a camera", "develop it first, as with: darktable-cli photo.rw2 photo.tif"},
		{"IIRO", "a raw file of a camera", "develop it first, as with: darktable-cli photo.orf photo.tif"},
	}
}

const (
	heifRemedy   = "convert it first, as with: heif-convert -q 100 photo.heic photo.png"
	netpbmRemedy = "convert it first, as with: magick photo.ppm photo.png"
)

// sniff detects the format of a complete file.
func sniff(data []byte) (codec, error) {
	c, err := formatOf(data)
	if err == nil && c.magic == webpMagic {
		// The decoder does not distinguish truncated from damaged files; the RIFF size does.
		if want := int64(binary.LittleEndian.Uint32(data[4:])) + 8; int64(len(data)) < want {
			return codec{}, fmt.Errorf("webp: the file has %d of %d bytes: %w", len(data), want, ErrTruncated)
		}
	}
	return c, err
}

// formatOf detects the format from the first bytes.
func formatOf(data []byte) (codec, error) {
	if len(data) == 0 {
		return codec{}, fmt.Errorf("the file is empty: %w", ErrTruncated)
	}
	for _, c := range codecs() {
		if !matches(data, c.magic) {
			continue
		}
		if len(data) < len(c.magic) {
			return codec{}, fmt.Errorf("the file ends after %d bytes: %w", len(data), ErrTruncated)
		}
		return c, nil
	}
	for _, f := range foreign() {
		if len(data) >= len(f.magic) && matches(data, f.magic) {
			return codec{}, fmt.Errorf("it is %s; %s: %w", f.name, f.remedy, ErrFormat)
		}
	}
	return codec{}, fmt.Errorf("not a %s image: %w", Formats, ErrFormat)
}

// IsPicture reports whether a file begins as those do that [Decode] reads.
func IsPicture(beginning []byte) bool {
	c, err := formatOf(beginning)
	return err == nil && len(beginning) >= len(c.magic)
}

// IsForeign reports whether a file begins as a picture of a format that is known but not read. The error of [Sniff] has the remedy.
func IsForeign(beginning []byte) bool {
	for _, f := range foreign() {
		if len(beginning) >= len(f.magic) && matches(beginning, f.magic) {
			return true
		}
	}
	return false
}

// matches compares the common prefix of data and magic.
func matches(data []byte, magic string) bool {
	for i := 0; i < len(magic) && i < len(data); i++ {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}

// FormatOf returns the format of a file by its content: png, jpeg, tiff, webp, bmp, gif, or "".
func FormatOf(data []byte) string {
	c, err := formatOf(data)
	if err != nil {
		return ""
	}
	return c.name
}
