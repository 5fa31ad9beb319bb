package haar

import "math"

// basis returns the orthonormal Haar vectors of length n, a power of two: the mean, then the differences from the largest
// to the smallest support.
func basis(n int) [][]float64 {
	mean := make([]float64, n)
	for i := range mean {
		mean[i] = 1 / math.Sqrt(float64(n))
	}
	out := [][]float64{mean}
	for support := n; support >= 2; support /= 2 {
		for begin := 0; begin < n; begin += support {
			v := make([]float64, n)
			for i := range support {
				v[begin+i] = 1 / math.Sqrt(float64(support))
				if i >= support/2 {
					v[begin+i] = -v[begin+i]
				}
			}
			out = append(out, v)
		}
	}
	return out
}
