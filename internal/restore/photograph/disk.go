package photograph

import (
	"math"

	"ddiff/restore/operator"
)

// DrawDisk returns the kernel of a lens out of focus: a disk of a radius in pixels, with the parts of pixels at its edge.
func DrawDisk(radius float64) *operator.Draw {
	const parts = 16 // of a pixel along an axis
	reach := int(math.Ceil(radius + 0.5))
	side := 2*reach + 1
	d := &operator.Draw{Name: Kernel, Dims: []int{side, side}, Data: make([]float32, side*side)}
	sum := 0
	inside := make([]int, side*side)
	at := func(i int) float64 { return (float64(i)+0.5)/parts - 0.5 - float64(reach) }
	for y := range side * parts {
		for x := range side * parts {
			if math.Hypot(at(y), at(x)) <= radius {
				inside[y/parts*side+x/parts]++
				sum++
			}
		}
	}
	for i, n := range inside {
		d.Data[i] = float32(float64(n) / float64(sum))
	}
	return d
}
