package photograph

import (
	"math"
	"math/cmplx"

	"ddiff/restore/operator"
)

// DetailsLeft returns the largest part that a kernel leaves of details above a frequency, in cycles per pixel, of any direction: 1 for a straight motion, which leaves what is
// sharp across it.
func DetailsLeft(kernel *operator.Draw, above float64) (most float64) {
	const least = 32 // for frequencies between those of a small kernel
	k := kernel.Dims[0]
	side := max(least, 2*k)
	v := make([]complex128, side*side)
	for i, w := range kernel.Data {
		v[i/k*side+i%k] = complex(float64(w), 0)
	}
	transform(v, side, side, false)
	for i, c := range v {
		fy, fx := float64(i/side)/float64(side), float64(i%side)/float64(side)
		if math.Hypot(min(fy, 1-fy), min(fx, 1-fx)) >= above {
			most = max(most, cmplx.Abs(c))
		}
	}
	return most
}
