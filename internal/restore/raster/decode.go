package raster

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// Limits of the input of [Decode].
const (
	// MaxPixels is the largest width times height: 128 Mi, such as 16384x8192. Decoding needs up to about 32 bytes of memory
	// per pixel.
	MaxPixels = 128 << 20
	// MaxBytes is the largest size of the file: 512 MiB.
	MaxBytes = 512 << 20
	// MaxExtraBytes is the largest number of bytes of a PNG or WebP file beside its pixels, such as metadata or other
	// data behind its end: 64 MiB. The headers of the other formats do not state the size of the pixels.
	MaxExtraBytes = 64 << 20
)

// Decode reads a PNG, JPEG, TIFF, WebP, BMP or GIF file into three channels.
//
// 16-bit samples keep their precision. Grey is replicated to the three channels. Alpha is composited over white, on the
// stored values. The EXIF orientation of a JPEG is applied. Of a TIFF with several pages, and of an animated GIF, the first is decoded. CMYK is converted
// by its profile, if it has one with a table for the perceptual intent. Of floating-point samples 0 is black and 1 is white, and others are clamped. See package tiff for the forms of TIFF.
//
// Errors are [ErrFormat], [ErrTruncated] and, above [MaxPixels], [MaxBytes] or [MaxExtraBytes], [ErrTooLarge]. ErrTooLarge
// depends on the header only and precedes the allocation of pixels.
func Decode(data []byte) (*Image, error) {
	if err := checkSize(data[:min(len(data), SniffBytes)], int64(len(data))); err != nil {
		return nil, fmt.Errorf("decode image: %w", err)
	}
	c, _, _, err := limitedHeader(data)
	if err != nil {
		return nil, fmt.Errorf("decode image: %w", err)
	}
	img, err := pixels(c, data, nil)
	if err != nil {
		return nil, fmt.Errorf("decode image: %w", err)
	}
	if c.name == "tiff" { // with floating-point samples
		for i, v := range img.Pix {
			if img.Pix[i] = min(1, max(-1, v)); v != v {
				return nil, fmt.Errorf("decode image: sample %d is %v: %w", i, v, ErrNotFinite)
			}
		}
	}
	return Orient(img, orientation(c, data)), nil
}

// Probe reads the header only: the size of the image that [Decode] returns, after the EXIF orientation. No limit applies, and the pixels may be damaged.
func Probe(data []byte) (width, height int, err error) {
	c, width, height, err := header(data)
	if err != nil {
		return 0, 0, fmt.Errorf("read image header: %w", err)
	}
	if Transposed(orientation(c, data)) {
		width, height = height, width
	}
	return width, height, nil
}

// Samples tells by the header of a file how its image is written as PNG without loss: with 16 bits per sample if it has more than 8, else with 8. grey: the file itself
// is a PNG file of one channel.
func Samples(data []byte) (grey bool, bits int) {
	bits = 8
	switch FormatOf(data) {
	case "tiff":
		bits = tiff.Bits(data)
	case "png":
		cfg, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			break
		}
		grey = cfg.ColorModel == color.GrayModel || cfg.ColorModel == color.Gray16Model
		if cfg.ColorModel == color.Gray16Model || cfg.ColorModel == color.RGBA64Model || cfg.ColorModel == color.NRGBA64Model {
			bits = 16
		}
	}
	if bits > 8 {
		bits = 16
	}
	return grey, bits
}

// header returns the format and the stored size.
func header(data []byte) (c codec, width, height int, err error) {
	c, err = sniff(data)
	if err != nil {
		return codec{}, 0, 0, err
	}
	var cfg image.Config
	err = guard(c.name, func() (err error) {
		cfg, err = c.config(bytes.NewReader(data))
		return err
	})
	if err != nil {
		return codec{}, 0, 0, err
	}
	if cfg.Width < 1 || cfg.Height < 1 {
		return codec{}, 0, 0, fmt.Errorf("%s: the header has the size %dx%d pixels: %w", c.name, cfg.Width, cfg.Height, ErrFormat)
	}
	return c, cfg.Width, cfg.Height, nil
}

// limitedHeader is header with the limit of pixels.
func limitedHeader(data []byte) (c codec, width, height int, err error) {
	c, width, height, err = header(data)
	if err == nil && width > MaxPixels/height { // without overflow
		return codec{}, 0, 0, fmt.Errorf("%s: %dx%d pixels, the limit is %d pixels: %w", c.name, width, height, MaxPixels, ErrTooLarge)
	}
	return c, width, height, err
}

// pixels decodes and converts. inspect sees the decoded image before, and may replace it; it may be nil.
func pixels(c codec, data []byte, inspect func(src image.Image) image.Image) (img *Image, err error) {
	err = guard(c.name, func() error {
		var src image.Image
		if plain := plainRGB(data); plain != nil {
			src = plain
		} else if src, err = c.decode(bytes.NewReader(data)); err != nil {
			return err
		}
		if inspect != nil {
			src = inspect(src)
		}
		if inked, ok := src.(*image.CMYK); ok {
			if k := readInks(metadata.Profile(data)); k != nil {
				img = k.convert(inked)
				return nil
			}
		}
		img = fromImage(src, c.toRGB)
		return nil
	})
	return img, err
}

// guard runs a decoder. It converts panics to errors, and errors to those of this package.
func guard(name string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: decoder panicked: %v: %w", name, r, ErrFormat)
		}
	}()
	switch err := f(); {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", name, ErrTruncated)
	case errors.Is(err, ErrFormat):
		return fmt.Errorf("%s: %w", name, err)
	default:
		// The decoders' messages already start with the format.
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
}
