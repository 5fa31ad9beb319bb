package photograph

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"

	"github.com/HugoSmits86/nativewebp"

	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
	"ddiff/internal/restore/raster/tiff"
)

// DefaultQuality is that of JPEG files.
const DefaultQuality = 95

// FileOptions are the form of a file.
type FileOptions struct {
	Format Format
	// Quality is that of JPEG, 1 to 100; 0: [DefaultQuality].
	Quality int
	// Strip leaves out everything beside the pixels, except for the resolution and an ICC profile, which are part of their meaning.
	Strip bool
	// Range has the numbers of black and white in the source, as for [raster.Picture.Rescale], and in the file. Nil: all of the range.
	Range *[2]float64
}

// pixels are the samples of a file: grey or colour, in [-1, 1] where a sample is rounded.
type pixels struct {
	*raster.Image
	alpha *raster.Image // of the same size, or nil
	bits  int
}

// EncodeFile returns the file of a restored picture of one or three channels. source is its measurement, and file the bytes of that; both are nil for one that is an
// array. The picture lies upright. Equal arguments give equal bytes.
//
// A picture with transparent pixels was restored over white: the file gets its opacity, and colours that look as the restored ones over white. JPEG has
// no transparency. JPEG and WebP have 8 bits; WebP is written without loss; only TIFF has floating-point samples.
func EncodeFile(img *raster.Image, source *raster.Picture, file []byte, o FileOptions) ([]byte, error) {
	if err := img.Validate(); err != nil || img.Channels != 1 && img.Channels != 3 {
		return nil, fmt.Errorf("encode picture: %d channels, 1 or 3 are needed: %w", img.Channels, raster.ErrShape)
	}
	if source != nil && source.HasRGBProfile() {
		img, _ = raster.InChannels(img, 3) // which always works
	}
	if i, ok := raster.Finite(img.Pix); !ok {
		return nil, fmt.Errorf("encode picture: value %d is %v: %w", i, img.Pix[i], raster.ErrNotFinite)
	}
	p, beside := pixels{Image: img, bits: 8}, metadata.Metadata{}
	if source != nil {
		var err error
		if p, err = describe(img, source, o); err != nil {
			return nil, fmt.Errorf("encode picture: %w", err)
		}
		if beside = metadata.Read(file).Upright(img.Width, img.Height); !source.ProfileFits() || o.Range != nil {
			beside.Profile = nil
		}
		if o.Strip {
			beside = metadata.Metadata{Profile: beside.Profile, DPI: beside.DPI}
		}
	}
	out, err := p.encode(o, beside)
	if err != nil {
		return nil, fmt.Errorf("encode picture: %w", err)
	}
	return out, nil
}

// describe returns the samples as the source has them.
func describe(img *raster.Image, source *raster.Picture, o FileOptions) (pixels, error) {
	p := pixels{Image: img, bits: source.Bits}
	if p.bits > 16 && o.Format != TIFF {
		p.bits = 16
	}
	if o.Format == JPEG || o.Format == WebP {
		p.bits = 8
	}
	if source.Alpha != nil && o.Format != JPEG {
		var err error
		if p.alpha, err = raster.Scale(source.Alpha, img.Width, img.Height); err != nil {
			return p, err
		}
		p.Image = overWhite(img, p.alpha)
	}
	if o.Range != nil {
		p.Image = source.Restore(p.Image, o.Range[0], o.Range[1])
	}
	if source.Grey && !source.HasRGBProfile() {
		p.Image = &raster.Image{Channels: 1, Height: img.Height, Width: img.Width, Pix: p.Plane(0)}
	}
	return p, nil
}

// overWhite returns colours that look as img does when they lie over white with an opacity. Where nothing shows they are white.
func overWhite(img, alpha *raster.Image) *raster.Image {
	out := img.Clone()
	for c := range out.Channels {
		for i, a := range alpha.Pix {
			a = min(1, max(0, a))
			alpha.Pix[i] = a
			if a > 0 {
				out.Plane(c)[i] = min(1, max(-1, (out.Plane(c)[i]-(1-a))/a))
			} else {
				out.Plane(c)[i] = 1
			}
		}
	}
	return out
}

func (p pixels) encode(o FileOptions, beside metadata.Metadata) ([]byte, error) {
	var out bytes.Buffer
	var err error
	switch o.Format {
	case TIFF:
		return tiff.Encode(p.samples(), beside.Tree())
	case JPEG:
		quality := o.Quality
		if quality == 0 {
			quality = DefaultQuality
		}
		err = jpeg.Encode(&out, p.image(true), &jpeg.Options{Quality: quality})
	case WebP:
		err = nativewebp.Encode(&out, p.image(false), nil)
	default:
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, p.image(false))
	}
	if err != nil {
		return nil, err
	}
	return beside.Insert(out.Bytes(), p.Width, p.Height, p.alpha != nil)
}

// plane returns that of a colour, 0 to 2.
func (p pixels) plane(c int) []float32 { return p.Plane(min(c, p.Channels-1)) }

// opacity returns that of a pixel as a value in [-1, 1].
func (p pixels) opacity(i int) float32 {
	if p.alpha == nil {
		return 1
	}
	return 2*p.alpha.Pix[i] - 1
}

// image returns the samples for encoders of 8 and 16 bits. premultiplied permits an image that has colours with alpha, which encoders convert faster.
func (p pixels) image(premultiplied bool) image.Image {
	area := image.Rect(0, 0, p.Width, p.Height)
	n := p.Width * p.Height
	switch grey := p.Channels == 1 && p.alpha == nil; {
	case grey && p.bits == 8:
		m := image.NewGray(area)
		for i, v := range p.Pix {
			m.Pix[i] = raster.To8(v)
		}
		return m
	case grey:
		m := image.NewGray16(area)
		for i, v := range p.Pix {
			binary.BigEndian.PutUint16(m.Pix[2*i:], raster.To16(v))
		}
		return m
	case p.bits == 8:
		m := image.NewNRGBA(area)
		for i := range n {
			for c := range 3 {
				m.Pix[4*i+c] = raster.To8(p.plane(c)[i])
			}
			m.Pix[4*i+3] = raster.To8(p.opacity(i))
		}
		if premultiplied && p.alpha == nil {
			return &image.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
		}
		return m
	}
	m := image.NewNRGBA64(area)
	for i := range n {
		for c := range 3 {
			binary.BigEndian.PutUint16(m.Pix[8*i+2*c:], raster.To16(p.plane(c)[i]))
		}
		binary.BigEndian.PutUint16(m.Pix[8*i+6:], raster.To16(p.opacity(i)))
	}
	return m
}

// samples returns the samples of a TIFF file.
func (p pixels) samples() tiff.Samples {
	s := tiff.Samples{Width: p.Width, Height: p.Height, Channels: p.Channels, Alpha: p.alpha != nil, Bits: p.bits}
	if s.Alpha {
		s.Channels++
	}
	put := func(v float32) {
		switch p.bits {
		case 8:
			s.Data = append(s.Data, raster.To8(v))
		case 16:
			s.Data = binary.LittleEndian.AppendUint16(s.Data, raster.To16(v))
		default:
			s.Data = binary.LittleEndian.AppendUint32(s.Data, math.Float32bits((v+1)/2))
		}
	}
	for i := range p.Width * p.Height {
		for c := range p.Channels {
			put(p.plane(c)[i])
		}
		if s.Alpha {
			put(p.opacity(i))
		}
	}
	return s
}
