package main_test

import (
	"math"
	"math/rand/v2"

	"ddiff/internal/restore/raster"
)

// exposed is what a camera writes of a scene: linear light behind a Bayer filter, photons and read noise of four electrons, bilinear demosaicing, white balance
// and the curve of sRGB. electrons are those of a green white pixel; 0: without noise.
func exposed(scene *raster.Image, electrons float64, r *rand.Rand) *raster.Image {
	balance := [3]float64{2, 1, 1.6}
	h, w := scene.Height, scene.Width
	colour := func(y, x int) int { return y%2 + x%2 } // of the filter: red, green, blue
	raw := make([]float64, h*w)
	for i := range raw {
		c := colour(i/w, i%w)
		v := linear((float64(scene.Plane(c)[i])+1)/2) / balance[c]
		if electrons > 0 {
			n := v * electrons
			v = (n + math.Sqrt(n+4*4)*r.NormFloat64()) / electrons // photons, in the limit of many
		}
		raw[i] = min(v, 1)
	}
	out := raster.New(3, h, w)
	for i := range raw {
		var sums, weights [3]float64
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if y, x := i/w+dy, i%w+dx; y >= 0 && y < h && x >= 0 && x < w {
					c, weight := colour(y, x), float64((2-dy*dy)*(2-dx*dx))
					sums[c] += weight * raw[y*w+x]
					weights[c] += weight
				}
			}
		}
		for c := range sums {
			out.Plane(c)[i] = float32(2*encoded(balance[c]*sums[c]/weights[c]) - 1)
		}
	}
	return out
}

// linear and encoded are the curve of sRGB and its inverse, of values from 0 to 1.
func linear(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func encoded(v float64) float64 {
	if v = min(1, max(0, v)); v <= 0.0031308 {
		return 12.92 * v
	}
	return 1.055*math.Pow(v, 1/2.4) - 0.055
}
