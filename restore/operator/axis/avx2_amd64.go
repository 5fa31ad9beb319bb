package axis

import "golang.org/x/sys/cpu"

// afterFast sets the rows of a block of [Band.After], and reports whether the processor can. The sums have the same order.
func (b *Band) afterFast(rows [lanes][]float32, columns [][lanes]float64) bool {
	if !cpu.X86.HasAVX2 || b.Rows == 0 {
		return false
	}
	afterAVX2(&rows[0][0], &rows[1][0], &rows[2][0], &rows[3][0], &columns[0], &b.first[0], &b.weights[0], b.Rows)
	return true
}

//go:noescape
func afterAVX2(to0, to1, to2, to3 *float32, columns *[lanes]float64, first *int, weights *[]float32, n int)
