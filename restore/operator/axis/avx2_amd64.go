package axis

import "golang.org/x/sys/cpu"

// afterFast is after for the first columns, and returns their number.
func (b *Band) afterFast(dst [lanes][]float32, columns [][lanes]float64) int {
	// The sums of a call, which the scheduler of Go cannot interrupt.
	const most = 256
	if !cpu.X86.HasAVX2 {
		return 0
	}
	columns = columns[:b.Cols] // fails if there are fewer
	for j := 0; j < b.Rows; j += most {
		bandAVX2(&[lanes]*float32{&dst[0][0], &dst[1][0], &dst[2][0], &dst[3][0]}, &columns[0], &b.first[0], &b.weights[0], j, min(j+most, b.Rows))
	}
	return b.Rows
}

//go:noescape
func bandAVX2(dst *[lanes]*float32, columns *[lanes]float64, first *int, weights *[]float32, from, to int)
