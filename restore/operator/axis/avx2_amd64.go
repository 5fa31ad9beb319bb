package axis

import "golang.org/x/sys/cpu"

// afterFast is a block of [Band.After] whose rows are stride values apart. The sums have the same order.
func (b *Band) afterFast(out []float32, stride int, columns [][lanes]float64) bool {
	if !cpu.X86.HasAVX2 || b.Rows == 0 {
		return false
	}
	_ = out[(lanes-1)*stride+b.Rows-1] // fails for a short one, of which the call knows nothing
	afterAVX2(&out[0], stride, &columns[0], &b.first[0], &b.weights[0], b.Rows)
	return true
}

//go:noescape
func afterAVX2(out *float32, stride int, columns *[lanes]float64, first *int, weights *[]float32, n int)
