//go:build !amd64

package axis

func (*Band) afterFast([]float32, int, [][lanes]float64) bool { return false }
