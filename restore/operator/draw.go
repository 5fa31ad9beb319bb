package operator

import (
	"fmt"
	"math"

	"ddiff/restore/noise"
	"ddiff/restore/raster"
)

// Variable describes an input of A that differs from item to item: a mask or a kernel.
type Variable struct {
	// Dims is the shape of one encoded draw.
	Dims []int
	// Draw makes a random draw.
	Draw func(r *noise.Stream) *Draw
	// Check refuses a draw from a file that does not fit, with [ErrParam].
	Check func(d *Draw) error
	// Encode turns a draw into the expression's input. Nil: the draw's data.
	Encode func(d *Draw) []float32
	// Scaled: a mask of another size is scaled, see [Operator.ScaleMask].
	Scaled bool
	// Weight: the encoded draw also weighs the residual in the data term.
	Weight bool
}

// Draw is a mask or a kernel in the form in which it is stored.
type Draw struct {
	// Name is "mask" or "kernel".
	Name string
	// Dims is [H, W] for a mask of zeros and ones, [k, k] for a kernel that sums to 1.
	Dims []int
	Data []float32
}

// ReadDraw decodes a mask or kernel from .npy or from the first channel of an image. Pixels of a mask from mid-grey up
// are observed; a kernel is scaled to the sum 1. A mask that drops no pixel, but has transparent ones, is refused with [ErrParam].
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
	if name == "mask" && sum == float32(len(d.Data)) {
		if p, err := raster.DecodePicture(data); err == nil && p.Alpha {
			return nil, fmt.Errorf("%w mask: its transparent pixels count as white, so that every pixel is observed; make them black where a pixel is lost", ErrParam)
		}
	}
	if name == "kernel" && sum > 0 {
		for i := range d.Data {
			d.Data[i] /= sum
		}
	}
	return d, nil
}
