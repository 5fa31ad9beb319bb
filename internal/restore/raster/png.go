package raster

import (
	"encoding/binary"
	"fmt"
	"image"
	"math"

	"ddiff/internal/restore/raster/metadata"
)

// EncodePicture encodes an image of one or three channels as a PNG file with the properties of a picture: 16 bits per sample, its
// profile if [Picture.ProfileFits], and one channel if it is grey, of which the first is taken, and has no RGB profile. Errors
// are those of [EncodePNG].
func EncodePicture(img *Image, p Picture) ([]byte, error) {
	switch {
	case p.HasRGBProfile() && img.Channels == 1:
		img, _ = InChannels(img, 3) // which always works
	case p.Grey && !p.HasRGBProfile():
		img = &Image{Channels: 1, Height: img.Height, Width: img.Width, Pix: img.Plane(0)}
	}
	bits := 8
	if p.Bits > 8 {
		bits = 16
	}
	file, err := encodeSamples(img, bits)
	if err != nil || !p.ProfileFits() {
		return file, err
	}
	return metadata.Metadata{Profile: p.Profile}.Insert(file, img.Width, img.Height, false)
}

// The colour spaces of profiles.
const (
	spaceRGB  = "RGB "
	spaceGrey = "GRAY"
)

// colourSpace returns that of the profile, or "" without a profile.
func (p Picture) colourSpace() string {
	const space = 16 // its offset
	if len(p.Profile) < space+4 {
		return ""
	}
	return string(p.Profile[space : space+4])
}

// ProfileFits reports whether a PNG file of the picture can contain its profile: one of RGB, or one of grey for a grey picture.
func (p Picture) ProfileFits() bool {
	space := p.colourSpace()
	return space == spaceRGB || space == spaceGrey && p.Grey
}

// EncodePNG encodes an image of one (grey) or three (RGB) channels with 8 bits per sample, rounded by [To8]. Equal images
// give equal bytes. Values outside [-1, 1] are clamped. Errors are [ErrNotFinite] and [ErrShape].
func EncodePNG(img *Image) ([]byte, error) { return encodeSamples(img, 8) }

// encodeSamples is EncodePNG with 8 or 16 bits per sample.
func encodeSamples(img *Image, bits int) ([]byte, error) {
	if err := checkEncodable(img); err != nil {
		return nil, err
	}
	f := pngForm{width: img.Width, height: img.Height, channels: img.Channels, bits: bits}
	return f.encode(func(y int, row []byte) {
		for c := range img.Channels {
			plane := img.Plane(c)[y*img.Width:][:img.Width]
			if bits == 16 {
				for x, v := range plane {
					binary.BigEndian.PutUint16(row[2*(x*img.Channels+c):], To16(v))
				}
				continue
			}
			samples8(row[c:], plane, img.Channels)
		}
	})
}

// EncodeOpaque encodes an opaque picture as [EncodePNG] does.
func EncodeOpaque(img *image.RGBA) ([]byte, error) {
	f := pngForm{width: img.Rect.Dx(), height: img.Rect.Dy(), channels: 3, bits: 8}
	return f.encode(func(y int, row []byte) {
		src := img.Pix[y*img.Stride:][:4*f.width]
		for x := range f.width {
			copy(row[3*x:3*x+3], src[4*x:])
		}
	})
}

// To16 maps v in [-1, 1] to 0..65535 as [To8] does to 0..255. To8 of the 16-bit sample is To8 of v.
func To16(v float32) uint16 {
	return uint16(math.Round(min(1, max(-1, float64(v)))*32767.5 + 32767.5))
}

// checkEncodable checks an image before it is encoded.
func checkEncodable(img *Image) error {
	if err := img.Validate(); err != nil {
		return fmt.Errorf("encode PNG: %w", err)
	}
	if i, ok := Finite(img.Pix); !ok {
		return fmt.Errorf("encode PNG: value %d is %v: %w", i, img.Pix[i], ErrNotFinite)
	}
	if img.Channels != 1 && img.Channels != 3 {
		return fmt.Errorf("encode PNG: image has %d channels, must be 1 or 3: %w", img.Channels, ErrShape)
	}
	return nil
}

// HasRGBProfile reports whether the file has a profile for red, green and blue.
func (p Picture) HasRGBProfile() bool { return p.colourSpace() == spaceRGB }
