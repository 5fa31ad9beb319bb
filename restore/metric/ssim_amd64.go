package metric

import "golang.org/x/sys/cpu"

// lanes is the number of columns that the processor filters together.
const lanes = 4

// filterDownFast is filterDown for the first columns, and returns their number. The sums have the same order.
func (s *ssimScratch) filterDownFast(top int) int {
	n := s.width / lanes * lanes
	if !cpu.X86.HasAVX2 || n == 0 {
		return 0
	}
	at, d := top*s.width, &s.down
	downAVX2(&d[0][0], &d[1][0], &d[2][0], &d[3][0], &s.x[at], &s.y[at], s.width, n, &s.window)
	return n
}

// filterAcrossFast is filterAcross for the first positions, and returns their number. The sums have the same order.
func (s *ssimScratch) filterAcrossFast(dst, src []float64) int {
	n := len(dst) / lanes * lanes
	if !cpu.X86.HasAVX2 || n == 0 {
		return 0
	}
	acrossAVX2(&dst[0], &src[0], n, &s.window)
	return n
}

//go:noescape
func downAVX2(mx, my, sq, xy, x, y *float64, stride, n int, window *[windowSize]float64)

//go:noescape
func acrossAVX2(dst, src *float64, n int, window *[windowSize]float64)
