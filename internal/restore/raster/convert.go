package raster

import (
	"image"
	"image/color"
	"math"

	"ddiff/internal/restore/raster/tiff"
)

// fromImage converts a decoded image, composited over white; toRGB converts luma and chroma.
func fromImage(src image.Image, toRGB func(y, cb, cr uint8) (r, g, b uint8)) *Image {
	bounds := src.Bounds()
	img := New(3, bounds.Dy(), bounds.Dx())
	if f, ok := src.(*tiff.Float); ok {
		fromFloat(f, img)
		return img
	}
	red, green, blue := img.Plane(0), img.Plane(1), img.Plane(2)
	if opaque, ok := src.(*image.RGBA); ok && opaque.Opaque() {
		var table [256]float32
		for p := range table {
			table[p], _, _ = levels(color.RGBA{R: uint8(p), A: 255}, toRGB)
		}
		i := 0
		for y := range img.Height {
			for row := opaque.Pix[y*opaque.Stride:][:4*img.Width]; len(row) > 0; row = row[4:] {
				red[i], green[i], blue[i] = table[row[0]], table[row[1]], table[row[2]]
				i++
			}
		}
		return img
	}
	i := 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			red[i], green[i], blue[i] = levels(src.At(x, y), toRGB)
			i++
		}
	}
	return img
}

// fromFloat converts floating-point samples, which may lie beyond black and white.
func fromFloat(f *tiff.Float, img *Image) {
	for c := range img.Channels {
		plane := img.Plane(c)
		for i, v := range f.Planes[min(c, len(f.Planes)-1)] {
			plane[i] = 2*v - 1
			if f.Alpha != nil {
				plane[i] = over(float64(plane[i]), float64(f.Alpha[i]))
			}
		}
	}
}

// levels converts one pixel with the precision of its type.
func levels(c color.Color, toRGB func(y, cb, cr uint8) (r, g, b uint8)) (r, g, b float32) {
	switch c := c.(type) {
	case color.NRGBA:
		return over8(c.R, c.G, c.B, c.A)
	case color.NRGBA64:
		a := (level16(c.A) + 1) / 2
		return over(level16(c.R), a), over(level16(c.G), a), over(level16(c.B), a)
	case color.YCbCr:
		return opaque8(toRGB(c.Y, c.Cb, c.Cr))
	case color.NYCbCrA:
		red, green, blue := toRGB(c.Y, c.Cb, c.Cr)
		return over8(red, green, blue, c.A)
	case color.CMYK:
		return opaque8(color.CMYKToRGB(c.C, c.M, c.Y, c.K))
	}
	red, green, blue, alpha := c.RGBA() // premultiplied
	a := (level16(uint16(alpha)) + 1) / 2
	return overPremultiplied(level16(uint16(red)), a), overPremultiplied(level16(uint16(green)), a), overPremultiplied(level16(uint16(blue)), a)
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

// level16 maps 0..65535 to [-1, 1].
func level16(p uint16) float64 { return float64(p)/32767.5 - 1 }

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
