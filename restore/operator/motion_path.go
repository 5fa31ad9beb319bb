package operator

import (
	"math"
	"math/cmplx"
	"slices"

	"ddiff/internal/restore/noise"
)

// motionKernel draws a size×size blur kernel along a random path, as DPS and DAPS do with the motion blur generator of
// Borodenko. The path's length is a random part of the kernel's diagonal; its straight steps have random lengths and
// directions that wander and sometimes swing to the other side. intensity in (0, 1] makes the path longer and more bent.
// The kernel is non-negative, sums to 1 and is centred on its path.
func motionKernel(r *noise.Stream, size int, intensity float64) []float32 {
	path := centred(motionPath(r, size, intensity))
	turn := cmplx.Rect(1, r.Between(0, math.Pi))
	grid := make([]float64, size*size)
	for i := range path {
		path[i] *= turn
	}
	previous := path[0]
	for _, p := range path {
		drawLine(grid, size, previous, p)
		previous = p
	}
	return normalised(smoothed(grid, size, 0.5*float64(size)/61), size)
}

// motionPath returns the points of a path, in pixels.
func motionPath(r *noise.Stream, size int, intensity float64) []complex128 {
	diagonal := math.Sqrt2 * float64(size)
	length := 0.75 * diagonal * (r.Uniform() + r.Between(0, intensity*intensity))

	widest := r.Between(0, intensity*math.Pi)
	swing := betaTwo(r, 20)
	angle := r.Between(-widest, widest)
	at := complex(0, 0)
	path := []complex128{at}
	for total := 0.0; total < length; {
		// A beta(1, 30) share of the diagonal.
		step := (1 - math.Pow(1-r.Uniform(), 1.0/30)) * (1 - intensity + 0.1) * diagonal
		step = min(step, length-total)
		at += cmplx.Rect(step, angle)
		path = append(path, at)
		total += max(step, 1e-3*diagonal)

		side := math.Copysign(1, angle)
		if r.Uniform() < swing {
			side = -side
		}
		angle = side * r.Triangular(0, intensity*widest, widest)
	}
	return path
}

// betaTwo draws from beta(2, b): the second smallest of b+1 uniform numbers.
func betaTwo(r *noise.Stream, b int) float64 {
	u := make([]float64, b+1)
	for i := range u {
		u[i] = r.Uniform()
	}
	slices.Sort(u)
	return u[1]
}

// centred shifts the mean of the points to 0.
func centred(path []complex128) []complex128 {
	mean := complex(0, 0)
	for _, p := range path {
		mean += p
	}
	mean /= complex(float64(len(path)), 0)
	for i := range path {
		path[i] -= mean
	}
	return path
}

// drawLine spreads points along a segment over the four nearest pixels and drops those outside the grid.
func drawLine(grid []float64, size int, from, to complex128) {
	const perPixel = 8
	n := int(cmplx.Abs(to-from)*perPixel) + 1
	for i := range n {
		p := from + (to-from)*complex((float64(i)+0.5)/float64(n), 0)
		weight := (cmplx.Abs(to-from) + 1e-6) / float64(n)
		x, y := real(p)+float64(size/2), imag(p)+float64(size/2)
		x0, y0 := math.Floor(x), math.Floor(y)
		for _, c := range [4][2]float64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
			cx, cy := x0+c[0], y0+c[1]
			if cx < 0 || cy < 0 || cx >= float64(size) || cy >= float64(size) {
				continue
			}
			grid[int(cy)*size+int(cx)] += weight * (1 - math.Abs(x-cx)) * (1 - math.Abs(y-cy))
		}
	}
}

// smoothed widens the line by a small Gaussian.
func smoothed(grid []float64, size int, std float64) []float64 {
	taps := gaussianTaps(max(std, 0.2))
	radius := min(len(taps)/2, 3)
	taps = taps[len(taps)/2-radius:][:2*radius+1]
	pass := func(in []float64, dx, dy int) []float64 {
		out := make([]float64, len(in))
		for y := range size {
			for x := range size {
				for a, w := range taps {
					sx, sy := x+(a-radius)*dx, y+(a-radius)*dy
					if sx >= 0 && sy >= 0 && sx < size && sy < size {
						out[y*size+x] += w * in[sy*size+sx]
					}
				}
			}
		}
		return out
	}
	return pass(pass(grid, 1, 0), 0, 1)
}

// normalised scales the sum to 1.
func normalised(grid []float64, size int) []float32 {
	sum := 0.0
	for _, v := range grid {
		sum += v
	}
	out := make([]float32, size*size)
	for i, v := range grid {
		out[i] = float32(v / sum)
	}
	return out
}
