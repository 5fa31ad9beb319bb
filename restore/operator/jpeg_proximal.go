package operator

import (
	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
)

// sampleVariance is the variance of the rounding of samples, in levels of 255.
const sampleVariance = 1. / 12

// proximal is [Expression.Proximal]. Quantisation in steps of q is an error of the coefficients c with the variance q²/12, and the rounding of samples
// adds to it, so that those of x are
//
//	c = (c_y + ρ·c_v)/(1 + ρ), with ρ = weight·n·(q² + 1)/12
//
// within c_y ± (0.4·q + 0.3): nearer to its border, the samples' rounding would move them out of the cell of y. Weight is per square of a value in
// [−1, 1], c in levels. c_y are the coefficients of y rounded to multiples of q, as the file has them; with q = 1 the samples' rounding hides
// which multiple that is, and they stay as they are. The distance is that of luma and chroma. A sample of chroma stands for n pixels, of which only the
// mean is known: its correction is repeated.
func (c *jpegCodec) proximal(g *onnx.Graph, v, y, weight onnx.Value) onnx.Value {
	n, channels, h, w := v.Dims[0], v.Dims[1], v.Dims[2], v.Dims[3]
	y = beyond(g, y, c.apply(g, v, unlimited))
	if channels == 1 {
		return g.Add(v, g.Mul(correction(g, greyLevels(g, v), greyLevels(g, y), c.luma, weight), g.Scalar(1/127.5)))
	}
	ofV, ofY := c.ycc(g, v), c.ycc(g, y)
	luma := correction(g, g.Slice(ofV, 1, 0, 1), g.Slice(ofY, 1, 0, 1), c.luma, weight)
	weight = g.Mul(weight, g.Scalar(float32(c.down*c.across)))
	chroma := correction(g, c.shrink(g, g.Slice(ofV, 1, 1, 3)), c.shrink(g, g.Slice(ofY, 1, 1, 3)), c.chroma, weight)
	d := g.Reshape(g.Concat(1, luma, c.enlarge(g, chroma)), n, 3, h*w)
	return g.Add(v, g.Reshape(g.MatMul(jpegToRGB().Value(g), d), v.Dims...))
}

// beyond returns y with the excess of u where y is black or white: the decoder has cut it off, and that of the estimate stands for it.
func beyond(g *onnx.Graph, y, u onnx.Value) onnx.Value {
	excess := func(y, u onnx.Value) onnx.Value { // above 1; of the other levels of y the factor is 0
		white := g.Clip(g.Add(g.Mul(y, g.Scalar(127.5)), g.Scalar(1-127.5)), 0, 1)
		return g.Mul(white, g.Apply("Relu", u.DType, u.Dims, nil, g.Minus(u, g.Scalar(1))))
	}
	return g.Minus(g.Add(y, excess(y, u)), excess(g.Neg(y), g.Neg(u)))
}

// correction returns what proximal adds to samples v, for decoded samples y, [N, C, H, W] in levels.
func correction(g *onnx.Graph, v, y onnx.Value, steps *axis.Matrix, weight onnx.Value) onnx.Value {
	t := newBlockTransform(g, v)
	of := func(values func(q float64) float64) onnx.Value { // of the steps
		return g.Const(axis.Fill(block, block, func(i, j int) float64 { return values(float64(steps.Data[i*block+j])) }).Data, block, 1, block)
	}
	q := of(func(q float64) float64 { return q })
	coarse := of(func(q float64) float64 { return min(q-1, 1) }) // 0 or 1
	half := of(func(q float64) float64 { return 0.4*q + 0.3 })
	variance := of(func(q float64) float64 { return (q*q/12 + sampleVariance) / (127.5 * 127.5) })
	f := t.forward(v)
	centre := t.forward(y)
	centre = g.Add(centre, g.Mul(g.Minus(g.Mul(roundedAway(g, g.Div(centre, q)), q), centre), coarse))
	rho := g.Mul(variance, weight)
	moved := g.Mul(g.Minus(f, centre), g.Div(rho, g.Add(rho, g.Scalar(1))))
	moved = g.Mul(g.Clip(g.Div(moved, half), -1, 1), half)
	d := t.inverse(g.Minus(g.Add(centre, moved), f))
	return cropped(g, cropped(g, d, axis.Rows, v.Dims[2]), axis.Cols, v.Dims[3])
}
