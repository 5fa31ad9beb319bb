//go:build !amd64

package axis

func (*Band) afterFast([lanes][]float32, [][lanes]float64) bool { return false }
