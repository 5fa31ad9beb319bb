package operator

import (
	"math"

	"ddiff/restore/raster"
)

// ReadDraw decodes a mask or kernel from .npy or from the first channel of an image. Pixels of a mask from mid-grey up
// are observed; a kernel is scaled to the sum 1.
func ReadDraw(name string, data []byte) (*Draw, error) {
	if raster.IsNPY(data) {
		a, err := raster.DecodeNPY(data)
		if err != nil {
			return nil, err
		}
		dims := a.Shape
		for len(dims) > 2 && dims[0] == 1 {
			dims = dims[1:]
		}
		return &Draw{Name: name, Dims: dims, Data: a.Data}, nil
	}
	img, err := raster.Decode(data)
	if err != nil {
		return nil, err
	}
	d := &Draw{Name: name, Dims: []int{img.Height, img.Width}, Data: make([]float32, img.Height*img.Width)}
	sum := float32(0)
	for i, v := range img.Pix[:len(d.Data)] {
		d.Data[i] = (v + 1) / 2
		if name == "mask" {
			d.Data[i] = float32(math.Round(float64(d.Data[i])))
		}
		sum += d.Data[i]
	}
	if name == "kernel" && sum > 0 {
		for i := range d.Data {
			d.Data[i] /= sum
		}
	}
	return d, nil
}
