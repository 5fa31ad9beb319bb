package raster

import (
	"fmt"
	"image"
	"image/color"
	"math"
)

// A rowReader converts one row of a decoded image, composited over white.
type rowReader func(y int, r, g, b []float32)

// fromImage converts every pixel type that the decoders produce; toRGB converts luma and chroma.
func fromImage(src image.Image, toRGB func(y, cb, cr uint8) (r, g, b uint8)) (*Image, error) {
	read, err := newRowReader(src, toRGB)
	if err != nil {
		return nil, err
	}
	b := src.Bounds()
	img := New(3, b.Dy(), b.Dx())
	n := img.Width
	red, green, blue := img.Plane(0), img.Plane(1), img.Plane(2)
	for y := range img.Height {
		read(b.Min.Y+y, red[y*n:(y+1)*n], green[y*n:(y+1)*n], blue[y*n:(y+1)*n])
	}
	return img, nil
}

func newRowReader(src image.Image, toRGB func(y, cb, cr uint8) (r, g, b uint8)) (rowReader, error) {
	x0 := src.Bounds().Min.X
	// packed reads pixels of size bytes.
	packed := func(pix []uint8, offset func(x, y int) int, size int, convert func(q []uint8) (r, g, b float32)) rowReader {
		return func(y int, r, g, b []float32) {
			p := pix[offset(x0, y):]
			for x := range r {
				r[x], g[x], b[x] = convert(p[size*x : size*x+size])
			}
		}
	}
	switch m := src.(type) {
	case *image.Gray:
		return packed(m.Pix, m.PixOffset, 1, func(q []uint8) (r, g, b float32) { return opaque8(q[0], q[0], q[0]) }), nil
	case *image.Gray16:
		return packed(m.Pix, m.PixOffset, 2, func(q []uint8) (r, g, b float32) {
			v := float32(level16(q))
			return v, v, v
		}), nil
	case *image.RGBA:
		return packed(m.Pix, m.PixOffset, 4, func(q []uint8) (r, g, b float32) {
			a := (level8(q[3]) + 1) / 2
			return overPremultiplied(level8(q[0]), a), overPremultiplied(level8(q[1]), a), overPremultiplied(level8(q[2]), a)
		}), nil
	case *image.RGBA64:
		return packed(m.Pix, m.PixOffset, 8, func(q []uint8) (r, g, b float32) {
			a := (level16(q[6:]) + 1) / 2
			return overPremultiplied(level16(q[0:]), a), overPremultiplied(level16(q[2:]), a), overPremultiplied(level16(q[4:]), a)
		}), nil
	case *image.NRGBA:
		return packed(m.Pix, m.PixOffset, 4, func(q []uint8) (r, g, b float32) { return over8(q[0], q[1], q[2], q[3]) }), nil
	case *image.NRGBA64:
		return packed(m.Pix, m.PixOffset, 8, func(q []uint8) (r, g, b float32) {
			a := (level16(q[6:]) + 1) / 2
			return over(level16(q[0:]), a), over(level16(q[2:]), a), over(level16(q[4:]), a)
		}), nil
	case *image.CMYK:
		return packed(m.Pix, m.PixOffset, 4, func(q []uint8) (r, g, b float32) {
			return opaque8(color.CMYKToRGB(q[0], q[1], q[2], q[3]))
		}), nil
	case *image.Paletted:
		return paletteReader(m), nil
	case *image.YCbCr:
		return func(y int, r, g, b []float32) {
			for x := range r {
				i, j := m.YOffset(x0+x, y), m.COffset(x0+x, y)
				r[x], g[x], b[x] = opaque8(toRGB(m.Y[i], m.Cb[j], m.Cr[j]))
			}
		}, nil
	case *image.NYCbCrA:
		return func(y int, r, g, b []float32) {
			for x := range r {
				i, j := m.YOffset(x0+x, y), m.COffset(x0+x, y)
				red, green, blue := toRGB(m.Y[i], m.Cb[j], m.Cr[j])
				r[x], g[x], b[x] = over8(red, green, blue, m.A[m.AOffset(x0+x, y)])
			}
		}, nil
	default:
		return nil, fmt.Errorf("pixels of type %T are not supported: %w", src, ErrFormat)
	}
}

// paletteReader converts the palette once. Indices beyond its end are black, as in the PNG decoder.
func paletteReader(m *image.Paletted) rowReader {
	var table [256][3]float32
	for i := range table {
		table[i] = [3]float32{-1, -1, -1}
		if i >= len(m.Palette) {
			continue
		}
		if c, ok := m.Palette[i].(color.NRGBA); ok {
			table[i][0], table[i][1], table[i][2] = over8(c.R, c.G, c.B, c.A)
			continue
		}
		r, g, b, a := m.Palette[i].RGBA()
		for k, v := range [3]uint32{r, g, b} {
			table[i][k] = overPremultiplied(float64(v)/32767.5-1, float64(a)/65535)
		}
	}
	return func(y int, r, g, b []float32) {
		p := m.Pix[m.PixOffset(m.Rect.Min.X, y):]
		for x := range r {
			t := &table[p[x]]
			r[x], g[x], b[x] = t[0], t[1], t[2]
		}
	}
}

// videoToRGB converts ITU-R BT.601 samples of video range (luma 16 to 235), as in lossy WebP. JPEG stores the full
// range, which is the only range that the standard library converts.
func videoToRGB(y, cb, cr uint8) (r, g, b uint8) {
	luma := 255. / 219 * (float64(y) - 16)
	u, v := 255./224*(float64(cb)-128), 255./224*(float64(cr)-128)
	round := func(p float64) uint8 { return uint8(math.Round(min(255, max(0, p)))) }
	return round(luma + 1.402*v), round(luma - 0.344136*u - 0.714136*v), round(luma + 1.772*u)
}

// level8 maps 0..255 to [-1, 1].
func level8(p uint8) float64 { return float64(p)/127.5 - 1 }

// level16 maps two bytes, the high one first, to [-1, 1].
func level16(p []uint8) float64 { return float64(uint16(p[0])<<8|uint16(p[1]))/32767.5 - 1 }

// opaque8 converts three samples.
func opaque8(r, g, b uint8) (float32, float32, float32) {
	return float32(level8(r)), float32(level8(g)), float32(level8(b))
}

// over8 composites three samples with alpha a over white.
func over8(r, g, b, a uint8) (float32, float32, float32) {
	alpha := float64(a) / 255
	return over(level8(r), alpha), over(level8(g), alpha), over(level8(b), alpha)
}

// over composites the level v with alpha a in [0, 1] over white (level 1).
func over(v, a float64) float32 { return float32(a*v + (1 - a)) }

// overPremultiplied composites a sample that is premultiplied with alpha. The result is in range also for invalid
// samples above alpha.
func overPremultiplied(v, a float64) float32 { return float32(min(1, v+2*(1-a))) }
