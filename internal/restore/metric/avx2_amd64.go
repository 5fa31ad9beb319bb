package metric

import "golang.org/x/sys/cpu"

const (
	// lanes is the number of values that the processor computes together.
	lanes = 8
	// mostValues bounds a call of halvesAVX2, which the scheduler of Go cannot interrupt, to less than 0.1 ms.
	mostValues = 1 << 16
)

// halvesFast is halves for the first values, and returns their number.
func halvesFast(a, b, x, y []float32) int {
	all := len(x) / lanes * lanes
	if !cpu.X86.HasAVX2 {
		return 0
	}
	for i := 0; i < all; i += mostValues {
		halvesAVX2(&a[i], &b[i], &x[i], &y[i], min(mostValues, all-i))
	}
	return all
}

// squaresFast returns the four sums of squares for the first values, and their number.
func squaresFast(values []float32, mean float64) (sums [4]float64, n int) {
	n = min(mostValues, len(values)/4*4)
	if !cpu.X86.HasAVX2 || n == 0 {
		return sums, 0
	}
	squaresAVX2(&sums, &values[0], n, mean)
	return sums, n
}

// addPairsFast is addPairs for the first pairs, and returns their number.
func addPairsFast(dst []float64, row []float32) int {
	n := min(mostValues, len(row)/2/4*4)
	if !cpu.X86.HasAVX2 || n == 0 {
		return 0
	}
	_ = dst[n-1] // fails for a short one, of which the call knows nothing
	pairsAVX2(&dst[0], &row[0], n)
	return n
}

// differenceFast is difference for the first columns, and returns their number.
func differenceFast(dst []float64, scale float64, from, middle, to [2][]float64) int {
	n := min(mostValues, len(dst)/4*4)
	if !cpu.X86.HasAVX2 || n == 0 {
		return 0
	}
	differenceAVX2(&dst[0], &from[0][0], &from[1][0], &middle[0][0], &middle[1][0], &to[0][0], &to[1][0], n, scale)
	return n
}

// filterDownFast is filterDown for the first columns, and returns their number. The sums have the same order.
func (s *ssimScratch) filterDownFast(top int) int {
	n := s.width / lanes * lanes
	if !cpu.X86.HasAVX2 || n == 0 {
		return 0
	}
	at, d := top*s.width, &s.down
	downAVX2(&d[0][0], &d[1][0], &d[2][0], &d[3][0], &s.a[at], &s.b[at], s.width, n, &s.window)
	return n
}

// compareFast is compare for all positions of a row that has at least lanes of them, and returns their number. The sums have the same order.
func (s *ssimScratch) compareFast() int {
	n := len(s.similarity)
	if !cpu.X86.HasAVX2 || n < lanes {
		return 0
	}
	d, last := &s.down, n-lanes
	compareAVX2(&s.similarity[0], &d[0][0], &d[1][0], &d[2][0], &d[3][0], n/lanes*lanes, &s.window)
	compareAVX2(&s.similarity[last], &d[0][last], &d[1][last], &d[2][last], &d[3][last], lanes, &s.window)
	return n
}

//go:noescape
func halvesAVX2(a, b, x, y *float32, n int)

//go:noescape
func squaresAVX2(sums *[4]float64, values *float32, n int, mean float64)

//go:noescape
func pairsAVX2(dst *float64, values *float32, n int)

//go:noescape
func differenceAVX2(dst, a, b, c, d, e, f *float64, n int, scale float64)

//go:noescape
func downAVX2(ma, mb, va, vb, a, b *float32, stride, n int, window *[windowSize]float32)

//go:noescape
func compareAVX2(similarity, ma, mb, va, vb *float32, n int, window *[windowSize]float32)
