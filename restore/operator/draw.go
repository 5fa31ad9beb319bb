package operator

import "ddiff/internal/restore/noise"

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
