package raster

import "golang.org/x/sys/cpu"

// mostFast bounds the bytes or values of a call, which the scheduler of Go cannot interrupt, to about 0.1 ms.
const mostFast = 1 << 17

// fast returns how many of n bytes or values the processor computes in groups of the given size.
func fast(n, group int) int {
	if !cpu.X86.HasAVX2 {
		return 0
	}
	return n / group * group
}

// finiteFast returns the number of first values that it finds finite.
func finiteFast(values []float32) (n int) {
	for all := fast(len(values), 8); n < all; {
		part := min(mostFast, all-n)
		if !finiteAVX2(&values[n], part) {
			break
		}
		n += part
	}
	return n
}

// samples8Fast is samples8 for the first values, and returns their number.
func samples8Fast(dst []byte, values []float32, distance int) int {
	all := fast(len(values), 8)
	if all > 0 {
		_ = dst[(all-1)*distance] // fails for a short one, of which a call knows nothing
	}
	for n := 0; n < all; n += mostFast {
		samplesAVX2(&dst[n*distance], &values[n], min(mostFast, all-n), distance)
	}
	return all
}

// filterPaethFast is filterPaeth for the first bytes, and returns their number too.
func filterPaethFast(out, row, above []byte, pixel int) (n, repeats int) {
	if n = fast(min(mostFast, len(out)), 16); n > 0 {
		repeats = paethAVX2(&out[0], &row[0], &above[0], n, pixel)
	}
	return n, repeats
}

// addFast is [AddWeighted] for the first values, and returns their number.
func addFast(sum []float64, weight float64, values []float32) int {
	all := fast(len(values), 4)
	if all > 0 {
		_ = sum[all-1] // fails for few sums, of whose number a call knows nothing
	}
	for n := 0; n < all; n += mostFast {
		addAVX2(&sum[n], weight, &values[n], min(mostFast, all-n))
	}
	return all
}

//go:noescape
func addAVX2(sum *float64, weight float64, values *float32, n int)

//go:noescape
func finiteAVX2(values *float32, n int) bool

//go:noescape
func samplesAVX2(dst *byte, values *float32, n, distance int)

//go:noescape
func paethAVX2(out, row, above *byte, n, pixel int) int
