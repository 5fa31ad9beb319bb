package raster

import (
	"encoding/binary"
	"image"
	"math"
)

// inks converts CMYK to sRGB by the table AToB0 of an ICC profile, for the perceptual intent, in its forms lut8Type and lut16Type with CIELAB
// (ICC.1:2022, 10.10 and 10.11).
type inks struct {
	at   [4][256]float64 // of an amount of an ink: its place in the grid
	grid int
	// colours are those of the grid, in which the last ink varies fastest, and out the curves of their coordinates, all in [0, 1].
	colours []float64
	out     [3][]float64
	top     float64 // of the encoding of CIELAB in out, in the one of 8 bits
}

// readInks returns nil for a profile of another kind.
func readInks(profile []byte) *inks {
	const tags, entry = 128, 12
	if len(profile) < tags+4 || string(profile[16:24]) != "CMYKLab " {
		return nil
	}
	for list := profile[tags+4:]; len(list) >= entry; list = list[entry:] {
		if string(list[:4]) != "A2B0" {
			continue
		}
		from, size := uint64(binary.BigEndian.Uint32(list[4:])), uint64(binary.BigEndian.Uint32(list[8:]))
		if from+size > uint64(len(profile)) {
			return nil
		}
		return readInkTable(profile[from : from+size])
	}
	return nil
}

func readInkTable(table []byte) *inks {
	const channels, curves = 8, 48
	if len(table) < curves+4 || table[channels] != 4 || table[channels+1] != 3 || table[channels+2] < 2 {
		return nil
	}
	k := &inks{grid: int(table[channels+2]), top: 1}
	in, out, size, rest := 256, 256, 1, table[curves:]
	switch string(table[:4]) {
	case "mft1":
	case "mft2":
		in, out, size, rest = int(binary.BigEndian.Uint16(rest)), int(binary.BigEndian.Uint16(rest[2:])), 2, rest[4:]
		k.top = 65535. / 65280
	default:
		return nil
	}
	colours := 3 * k.grid * k.grid * k.grid * k.grid
	if in < 2 || out < 2 || len(rest) < size*(4*in+colours+3*out) {
		return nil
	}
	take := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			if size == 1 {
				v[i] = float64(rest[i]) / 0xff
			} else {
				v[i] = float64(binary.BigEndian.Uint16(rest[2*i:])) / 0xffff
			}
		}
		rest = rest[size*n:]
		return v
	}
	for i := range k.at {
		curve := take(in)
		for v := range k.at[i] {
			k.at[i][v] = along(curve, float64(v)/0xff) * float64(k.grid-1)
		}
	}
	k.colours = take(colours)
	for i := range k.out {
		k.out[i] = take(out)
	}
	return k
}

// along returns the value of a curve at a place in [0, 1].
func along(curve []float64, at float64) float64 {
	at *= float64(len(curve) - 1)
	i := min(int(at), len(curve)-2)
	return curve[i] + (at-float64(i))*(curve[i+1]-curve[i])
}

// convert returns the picture in sRGB.
func (k *inks) convert(src *image.CMYK) *Image {
	b := src.Bounds()
	out := New(3, b.Dy(), b.Dx())
	for i := range out.Height * out.Width {
		at := src.PixOffset(b.Min.X+i%out.Width, b.Min.Y+i/out.Width)
		for c, v := range sRGB(k.lab([4]uint8(src.Pix[at : at+4]))) {
			out.Plane(c)[i] = float32(2*v - 1)
		}
	}
	return out
}

// lab returns the CIELAB coordinates of amounts of inks, interpolated linearly along the first ink and between the corners of a tetrahedron along the others.
func (k *inks) lab(amounts [4]uint8) (lab [3]float64) {
	var part [4]float64
	var step [4]int // in colours
	base, size := 0, 3
	for i := 3; i >= 0; i-- {
		at := k.at[i][amounts[i]]
		first := min(int(at), k.grid-2)
		part[i], step[i], base, size = at-float64(first), size, base+size*first, size*k.grid
	}
	order := [3]int{1, 2, 3} // from the largest part
	for _, pair := range [3][2]int{{0, 1}, {1, 2}, {0, 1}} {
		if a, b := &order[pair[0]], &order[pair[1]]; part[*a] < part[*b] {
			*a, *b = *b, *a
		}
	}
	for i, weight := range [2]float64{1 - part[0], part[0]} {
		corner, left := base+i*step[0], 1.
		for n := range 4 {
			next := 0.
			if n < 3 {
				next = part[order[n]]
			}
			for c := range lab {
				lab[c] += weight * (left - next) * k.colours[corner+c]
			}
			if left = next; n < 3 {
				corner += step[order[n]]
			}
		}
	}
	for c, v := range lab {
		lab[c] = k.top * along(k.out[c], v)
	}
	return [3]float64{100 * lab[0], 255*lab[1] - 128, 255*lab[2] - 128}
}

// sRGB converts CIELAB with the white D50 to values in [0, 1], by the matrix of IEC 61966-2-1 with Bradford's adaptation to D50.
func sRGB(lab [3]float64) (rgb [3]float64) {
	cube := func(t float64) float64 {
		if t > 6./29 {
			return t * t * t
		}
		return 3 * 6 * 6 / (29. * 29) * (t - 4./29)
	}
	l := (lab[0] + 16) / 116
	x, y, z := 0.9642*cube(l+lab[1]/500), cube(l), 0.8249*cube(l-lab[2]/200)
	for c, row := range [3][3]float64{{3.1338561, -1.6168667, -0.4906146}, {-0.9787684, 1.9161415, 0.0334540}, {0.0719453, -0.2289914, 1.4052427}} {
		v := min(1, max(0, row[0]*x+row[1]*y+row[2]*z))
		if v <= 0.0031308 {
			rgb[c] = 12.92 * v
		} else {
			rgb[c] = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
	}
	return rgb
}
