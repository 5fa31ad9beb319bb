package raster

import (
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// Picture is an image file that is a measurement: its pixels, and the properties of the file that a restored picture keeps.
type Picture struct {
	// Image has three channels. Grey is replicated, alpha is composited over white, the orientation is applied.
	Image *Image
	// Grey: red, green and blue are equal in every pixel.
	Grey bool
	// Bits is the number of bits per sample: 8, 16, or 32 for floating-point samples, which are not rounded.
	Bits int
	// Profile is the ICC profile of the file, nil without one. See [EncodePicture] for those that a PNG file can contain.
	Profile []byte
	// Alpha has the opacity of each pixel in one channel, from 0 to 1. Nil: the picture is opaque.
	Alpha *Image
	// CMYK: the file stores inks, which were converted to sRGB by their profile or, ByFormula, without one.
	CMYK, ByFormula bool
}

// Rescale makes low black and high white: numbers of the file, such as 0 and 4095 for 12 bits in samples of 16 bits. Of floating-point samples 1 is white
// otherwise.
func (p *Picture) Rescale(low, high float64) {
	top := p.top()
	for i, v := range p.Image.Pix {
		p.Image.Pix[i] = float32(2*((float64(v)+1)/2*top-low)/(high-low) - 1)
	}
}

// Restore undoes [Picture.Rescale] for an image, in a copy.
func (p *Picture) Restore(img *Image, low, high float64) *Image {
	out, top := img.Clone(), p.top()
	for i, v := range out.Pix {
		out.Pix[i] = float32(2*(low+(float64(v)+1)/2*(high-low))/top - 1)
	}
	return out
}

// top is the number of white.
func (p *Picture) top() float64 {
	if p.Bits > 16 {
		return 1
	}
	return math.Exp2(float64(p.Bits)) - 1
}

// DecodePicture reads a file as [Decode] does, with these differences: the EXIF orientation of every format is
// applied, animated WebP is refused, and floating-point samples may lie beyond black and white. Errors are those of Decode, and
// [ErrNotFinite].
func DecodePicture(data []byte) (*Picture, error) {
	p, orientation, err := decodePicture(data, func(src image.Image) image.Image { return src })
	if err != nil {
		return nil, err
	}
	p.Image = Orient(p.Image, orientation)
	if p.Alpha != nil {
		p.Alpha = Orient(p.Alpha, orientation)
	}
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
	p = &Picture{Bits: 8, Profile: metadata.Profile(data)}
	p.Image, err = pixels(c, data, func(src image.Image) image.Image {
		p.describe(src)
		return part(src)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("decode picture: %w", err)
	}
	if i, ok := Finite(p.Image.Pix); !ok {
		return nil, 0, fmt.Errorf("decode picture: sample %d is %v: %w", i, p.Image.Pix[i], ErrNotFinite)
	}
	p.ByFormula = p.CMYK && readInks(p.Profile) == nil
	p.Grey = slices.Equal(p.Image.Plane(0), p.Image.Plane(1)) && slices.Equal(p.Image.Plane(0), p.Image.Plane(2))
	return p, metadata.Orientation(data), nil
}

// ProbePicture reads the header only: width and height are those of the image that [DecodePicture] returns. Errors are those of
// DecodePicture that follow from the header.
func ProbePicture(data []byte) (width, height int, err error) {
	return probePicture(data, true)
}

// ProbeStored is ProbePicture for [DecodeStored].
func ProbeStored(data []byte) (width, height int, err error) { return probePicture(data, false) }

func probePicture(data []byte, turned bool) (width, height int, err error) {
	_, width, height, err = checkedHeader(data)
	if err != nil {
		return 0, 0, fmt.Errorf("read picture header: %w", err)
	}
	if turned && Transposed(metadata.Orientation(data)) {
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
func (p *Picture) describe(src image.Image) {
	switch src.(type) {
	case *image.Gray16, *image.RGBA64, *image.NRGBA64:
		p.Bits = 16
	case *tiff.Float:
		p.Bits = 32
	case *image.CMYK:
		p.CMYK = true
	}
	if o, ok := src.(interface{ Opaque() bool }); ok && !o.Opaque() {
		p.Alpha = opacity(src)
	}
}

// opacity returns the alpha of each pixel.
func opacity(src image.Image) *Image {
	b := src.Bounds()
	out := New(1, b.Dy(), b.Dx())
	for i := range out.Pix {
		_, _, _, a := src.At(b.Min.X+i%out.Width, b.Min.Y+i/out.Width).RGBA()
		out.Pix[i] = float32(a) / 0xffff
	}
	return out
}

// isAnimated reports whether a file is a WebP animation, by the flag of its extended header.
func isAnimated(data []byte) bool {
	const flags, animation = 20, 0x02
	return len(data) > flags && matches(data, webpMagic) && strings.HasPrefix(string(data[12:]), "VP8X") && data[flags]&animation != 0
}
