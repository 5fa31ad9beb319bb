package raster

import (
	"fmt"
	"image"
	"slices"
	"strings"
)

// Picture is an image file that is a measurement: its pixels, and the properties of the file that a restored picture keeps.
type Picture struct {
	// Image has three channels. Grey is replicated, alpha is composited over white, the orientation is applied.
	Image *Image
	// Grey: red, green and blue are equal in every pixel.
	Grey bool
	// Bits is the number of bits per sample, 8 or 16.
	Bits int
	// Profile is the ICC profile of the file, nil without one. See [EncodePicture] for those that a PNG file can contain.
	Profile []byte
	// Alpha: the file has pixels that are not opaque.
	Alpha bool
}

// DecodePicture reads a PNG, JPEG, TIFF or WebP file as [Decode] does, with three differences: the EXIF orientation of every format is
// applied, CMYK is refused, because the conversion to RGB depends on a profile that this package does not evaluate, and
// animations are refused. Errors are those of Decode.
func DecodePicture(data []byte) (*Picture, error) {
	p, orientation, err := decodePicture(data, func(src image.Image) image.Image { return src })
	if err != nil {
		return nil, err
	}
	p.Image = Orient(p.Image, orientation)
	return p, nil
}

// DecodeStored is DecodePicture without the orientation, which [Orient] applies: the pixels lie as in the file. Of a JPEG file the image has all
// samples of incomplete blocks at the right and lower border; width and height are those of the picture.
func DecodeStored(data []byte) (p *Picture, width, height, orientation int, err error) {
	p, orientation, err = decodePicture(data, func(src image.Image) image.Image {
		width, height = src.Bounds().Dx(), src.Bounds().Dy()
		if IsJPEG(data) {
			src = wholeBlocks(src)
		}
		return src
	})
	return p, width, height, orientation, err
}

func decodePicture(data []byte, part func(src image.Image) image.Image) (p *Picture, orientation int, err error) {
	if err := checkSize(data[:min(len(data), SniffBytes)], int64(len(data))); err != nil {
		return nil, 0, fmt.Errorf("decode picture: %w", err)
	}
	c, _, _, err := checkedHeader(data)
	if err != nil {
		return nil, 0, fmt.Errorf("decode picture: %w", err)
	}
	p = &Picture{Bits: 8, Profile: iccProfile(c, data)}
	p.Image, err = pixels(c, data, func(src image.Image) (image.Image, error) { return part(src), p.describe(src) })
	if err != nil {
		return nil, 0, fmt.Errorf("decode picture: %w", err)
	}
	p.Grey = slices.Equal(p.Image.Plane(0), p.Image.Plane(1)) && slices.Equal(p.Image.Plane(0), p.Image.Plane(2))
	return p, exifOrientation(exifOf(c, data)), nil
}

// ProbePicture reads the header only: width and height are those of the image that [DecodePicture] returns. Errors are those of
// DecodePicture that follow from the header.
func ProbePicture(data []byte) (width, height int, err error) {
	return probePicture(data, true)
}

// ProbeStored is ProbePicture for [DecodeStored].
func ProbeStored(data []byte) (width, height int, err error) { return probePicture(data, false) }

func probePicture(data []byte, turned bool) (width, height int, err error) {
	c, width, height, err := checkedHeader(data)
	if err != nil {
		return 0, 0, fmt.Errorf("read picture header: %w", err)
	}
	if turned && Transposed(exifOrientation(exifOf(c, data))) {
		width, height = height, width
	}
	return width, height, nil
}

// checkedHeader is header for pictures, with the limit of pixels.
func checkedHeader(data []byte) (c codec, width, height int, err error) {
	if isAnimated(data) {
		return c, 0, 0, fmt.Errorf("webp: the file is an animation; save one frame as a picture: %w", ErrFormat)
	}
	return limitedHeader(data)
}

// describe notes the properties of decoded pixels.
func (p *Picture) describe(src image.Image) error {
	switch src.(type) {
	case *image.Gray16, *image.RGBA64, *image.NRGBA64:
		p.Bits = 16
	case *image.CMYK:
		return fmt.Errorf("the picture is in CMYK; convert it to RGB first, as with ImageMagick: magick in.jpg -colorspace sRGB out.png: %w", ErrFormat)
	}
	if o, ok := src.(interface{ Opaque() bool }); ok {
		p.Alpha = !o.Opaque()
	}
	return nil
}

// isAnimated reports whether a file is a WebP animation, by the flag of its extended header.
func isAnimated(data []byte) bool {
	const flags, animation = 20, 0x02
	return len(data) > flags && matches(data, webpMagic) && strings.HasPrefix(string(data[12:]), "VP8X") && data[flags]&animation != 0
}
