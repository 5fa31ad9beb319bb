package tiff

import (
	"image"
	"image/color"
)

// canvas collects samples into an image.
type canvas struct {
	*layout
	grey   *image.Gray
	grey16 *image.Gray16
	pix    []byte // of an image of four samples of 8 bits
	pix16  []byte // of an image of four samples of 16 bits, big-endian
	img    image.Image
	floats *Float
}

// canvas returns an empty image for the pixels: opaque, unless there is alpha.
func (l *layout) canvas() *canvas {
	c := &canvas{layout: l}
	area := image.Rect(0, 0, l.width, l.height)
	grey := l.photometric == blackIsZero || l.photometric == whiteIsZero
	switch {
	case l.format == float || l.bits == 32:
		c.floats = &Float{Width: l.width, Height: l.height, Bits: l.bits}
		n := 3
		if grey {
			n = 1
		}
		for range n {
			c.floats.Planes = append(c.floats.Planes, make([]float32, l.width*l.height))
		}
		if l.alpha >= 0 {
			c.floats.Alpha = make([]float32, l.width*l.height)
		}
	case l.photometric == cmyk:
		m := image.NewCMYK(area)
		c.img, c.pix = m, m.Pix
	case grey && l.alpha < 0 && l.bits == 8:
		c.grey = image.NewGray(area)
		c.img = c.grey
	case grey && l.alpha < 0:
		c.grey16 = image.NewGray16(area)
		c.img = c.grey16
	case l.bits == 8 && l.premultiplied:
		m := image.NewRGBA(area)
		c.img, c.pix = m, m.Pix
	case l.bits == 8:
		m := image.NewNRGBA(area)
		c.img, c.pix = m, m.Pix
	case l.premultiplied:
		m := image.NewRGBA64(area)
		c.img, c.pix16 = m, m.Pix
	default:
		m := image.NewNRGBA64(area)
		c.img, c.pix16 = m, m.Pix
	}
	if l.alpha < 0 && l.photometric != cmyk {
		for i := 3; i < len(c.pix); i += 4 {
			c.pix[i] = 0xff
		}
		for i := 6; i < len(c.pix16); i += 8 {
			c.pix16[i], c.pix16[i+1] = 0xff, 0xff
		}
	}
	return c
}

// set sets a sample of a pixel. Samples beyond the colours and alpha are dropped.
func (c *canvas) set(pixel, sample int, v float64) {
	colours := 3
	switch c.photometric {
	case cmyk:
		colours = 4
	case blackIsZero, whiteIsZero:
		colours = 1
	}
	isAlpha := sample == c.alpha
	if sample >= colours && !isAlpha {
		return
	}
	top := float64(uint64(1)<<min(c.bits, 32) - 1)
	if c.format == float {
		top = 1
	}
	if c.photometric == whiteIsZero && !isAlpha {
		v = top - v
	}
	switch {
	case c.floats != nil && isAlpha:
		c.floats.Alpha[pixel] = float32(v / top)
	case c.floats != nil:
		c.floats.Planes[sample][pixel] = float32(v / top)
	case c.grey != nil:
		c.grey.Pix[pixel] = uint8(v)
	case c.grey16 != nil:
		c.grey16.SetGray16(pixel%c.width, pixel/c.width, color.Gray16{Y: uint16(v)})
	case c.photometric == cmyk && c.bits == 16:
		c.pix[4*pixel+sample] = uint8(uint16(v) >> 8)
	case colours == 1 && !isAlpha: // grey with alpha
		for at := range 3 {
			c.put(pixel, at, v)
		}
	case isAlpha:
		c.put(pixel, 3, v)
	default:
		c.put(pixel, sample, v)
	}
}

// put sets a sample of an image of four.
func (c *canvas) put(pixel, at int, v float64) {
	if c.pix != nil {
		c.pix[4*pixel+at] = uint8(v)
		return
	}
	c.pix16[8*pixel+2*at], c.pix16[8*pixel+2*at+1] = uint8(uint16(v)>>8), uint8(uint16(v))
}

// finish returns the image. Premultiplied colours of floating-point samples are divided.
func (c *canvas) finish() image.Image {
	if c.floats == nil {
		return c.img
	}
	if c.premultiplied {
		for i, a := range c.floats.Alpha {
			for _, p := range c.floats.Planes {
				if a > 0 {
					p[i] /= a
				}
			}
		}
	}
	return c.floats
}
