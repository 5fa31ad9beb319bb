package method

import (
	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
)

// Filled is [Builder.Rough] with the missing pixels filled smoothly from the observed ones around them, in a mosaic those of each colour. For a grey y it
// is that image, for tasks that observe all pixels Rough.
//
// It is the method of push and pull: means of 2×2 observed pixels make an image of half the size, whose own gaps are filled in the same way, and
// its enlargement fills the gaps of the larger one. Smoothing rounds of the filled pixels remove the edges of the enlargement.
func (b *Builder) Filled() onnx.Value {
	op := b.run.Operator
	switch {
	case op.Grey && !op.Mosaic:
		return b.Expand(b.in.measurement, op.Image.Dims(b.in.measurement.Dims[0])...)
	case op.Mosaic:
		return b.fill(b.Rough(), b.SVD().Values(0)) // 1 where a pixel has the sample of a colour
	case op.Masked():
		return b.fill(b.Rough(), b.in.mask)
	}
	return b.Rough()
}

// fillRounds is the number of smoothing rounds at each size.
const fillRounds = 3

// fill returns sum/weight where weight is positive, and a smooth continuation elsewhere. The weight has one channel, or those of sum.
func (b *Builder) fill(sum, weight onnx.Value) onnx.Value {
	height, width := sum.Dims[2], sum.Dims[3]
	seen := b.larger(weight, b.Scalar(0))
	mean := b.Div(sum, b.Max(weight, b.Scalar(tiny)))
	if height == 1 && width == 1 {
		return mean
	}
	halve := axis.NewSeparable(halving(height), halving(width))
	x := b.fill(halve.Forward(b.Graph, sum, sum), halve.Forward(b.Graph, weight, weight))
	x = axis.NewSeparable(doubling(height), doubling(width)).Forward(b.Graph, x, x)
	missing, smooth := b.Minus(b.Scalar(1), seen), axis.NewSeparable(binomial(height), binomial(width))
	for range fillRounds {
		x = b.Add(b.Mul(mean, seen), b.Mul(x, missing))
		x = smooth.Forward(b.Graph, x, x)
	}
	return b.Add(b.Mul(mean, seen), b.Mul(x, missing))
}

// halving averages pairs of n entries; the last of an odd number stays alone.
func halving(n int) *axis.Band {
	return axis.NewBand((n+1)/2, n, func(row int, add func(int, float32)) {
		add(2*row, 0.5)
		add(min(2*row+1, n-1), 0.5)
	})
}

// doubling interpolates n entries linearly between the centres of pairs.
func doubling(n int) *axis.Band {
	half := (n + 1) / 2
	return axis.NewBand(n, half, func(row int, add func(int, float32)) {
		add(row/2, 0.75)
		add(min(max(row/2-1+row%2*2, 0), half-1), 0.25)
	})
}

// binomial averages neighbours with the weights 1/4, 1/2, 1/4; the border repeats.
func binomial(n int) *axis.Band {
	return axis.NewBand(n, n, func(row int, add func(int, float32)) {
		add(max(row-1, 0), 0.25)
		add(row, 0.5)
		add(min(row+1, n-1), 0.25)
	})
}
